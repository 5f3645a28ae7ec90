"""Asks again where that may help."""

import asyncio
import random
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from yarl import URL

from s2l.collectors import failure
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.page import PAGE_MIMES, Fetched, NowUs, PageFetcher
from s2l.collectors.politeness.gate import site_of
from s2l.collectors.politeness.manners import RetryPolicy
from s2l.collectors.politeness.throttle import Throttle

PASSING: Final = frozenset(
    {
        failure.CONNECT,
        failure.CONNECT_TIMEOUT,
        failure.FIRST_BYTE_TIMEOUT,
        failure.IDLE_TIMEOUT,
        failure.BROKEN,
        *(failure.http_status(code) for code in (429, 500, 502, 503, 504)),
    }
)
"""Failures that may be gone a moment later."""


class Retrying:
    """A ``PageFetcher`` that repeats what fails in passing.

    A Retry-After holds all requests to the site that says so, where redirects may have led.
    ``wait_us`` is all the waiting of all attempts, and in between; the failed attempts' own times
    stay part of the whole.
    """

    def __init__(
        self,
        inner: PageFetcher,
        policy: RetryPolicy,
        throttle: Throttle,
        *,
        chance: random.Random | None = None,
    ) -> None:
        self._inner = inner
        self._policy = policy
        self._throttle = throttle
        self._chance = chance or random.Random()

    async def fetch(
        self,
        url: str,
        now_us: NowUs,
        mimes: Collection[str] | None = PAGE_MIMES,
        headers: Mapping[str, str] | None = None,
    ) -> Fetched:
        """Fetch ``url``, see ``PageFetcher``."""
        waited_us = 0
        for attempt in range(1, self._policy.attempts + 1):
            try:
                page = await self._inner.fetch(url, now_us, mimes, headers)
                return replace(page, attempts=attempt, wait_us=page.wait_us + waited_us)
            except Failure as failed:
                waited_us += failed.meta.get("wait_us", 0)
                if attempt > 1:
                    failed.meta = {**failed.meta, "attempts": attempt, "wait_us": waited_us}
                if failed.retry_after_s is not None:
                    self._throttle.hold(site_of(URL(failed.url or url)), failed.retry_after_s)
                wait_s = self._wait_s(failed, attempt)
                if wait_s is None:
                    raise
                asleep_us = now_us()
                await asyncio.sleep(wait_s)
                waited_us += now_us() - asleep_us
        raise AssertionError("the last attempt returns or raises")

    def _wait_s(self, failed: Failure, attempt: int) -> float | None:
        """How long to wait before the next attempt; None: there is none."""
        policy = self._policy
        if attempt == policy.attempts or failed.final or failed.status not in PASSING:
            return None
        if failed.retry_after_s is not None:
            return failed.retry_after_s if failed.retry_after_s <= policy.longest_s else None
        longest_s = min(policy.longest_s, policy.backoff_s * float(2 ** (attempt - 1)))
        return longest_s * self._chance.uniform(0.5, 1.0)
