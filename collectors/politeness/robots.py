"""robots.txt, as RFC 9309 has it: fetched once a day and site, and obeyed."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from protego import Protego
from yarl import URL

from s2l.collectors import failure
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.page import PageFetcher, monotonic_us

MOST_BYTES: Final = 512_000
"""How much of a robots.txt is read; the RFC demands 500 KiB at least."""

_LONG: Final = 20_000  # characters

_KEEP_S: Final = 24 * 3600.0
_KEEP_FAILED_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class _Rules:
    """``parsed`` is None where there is no robots.txt; ``failed`` is why nothing is known.

    ``is_long``: it takes milliseconds to parse, or to look something up, which no clock here is to
    wait for.
    """

    parsed: Protego | None = None
    failed: Failure | None = None
    is_long: bool = False

    async def allow(self, url: str, agent: str) -> bool:
        """Whether an agent may fetch it."""
        if self.parsed is None:
            return True
        if self.is_long:
            return await asyncio.to_thread(self.parsed.can_fetch, url, agent)
        return self.parsed.can_fetch(url, agent)

    def delay_s(self, agent: str) -> float:
        """The time between requests that an agent is asked for."""
        return 0.0 if self.parsed is None else max(0.0, self.parsed.crawl_delay(agent) or 0.0)


class Robots:
    """The rules of all sites.

    ``fetcher`` reads at most ``MOST_BYTES``. A site without the file (4xx, or redirects without
    end) allows everything; one that answers 5xx or 429 allows nothing, and is asked again after
    a minute. Where the file cannot be had because the host cannot be reached, or may not be,
    neither can its pages: they fail with the same code.
    """

    def __init__(
        self, fetcher: PageFetcher, agent: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetcher = fetcher
        self._agent = agent
        self._clock = clock
        self._sites: dict[URL, tuple[float, asyncio.Task[_Rules]]] = {}

    async def delay_s(self, url: URL) -> float:
        """The time between requests that the site of ``url`` asks for, if it may be fetched.

        Raises:
            Failure: ``robots_disallowed``, ``robots_unreachable``, or why its host is not reached.
        """
        rules = await self._rules(url.origin())
        if rules.failed is not None:
            raise Failure(rules.failed.status, f"robots.txt: {rules.failed.detail}", final=True)
        if not await rules.allow(str(url), self._agent):
            raise Failure(failure.ROBOTS_DISALLOWED, "robots.txt disallows it", final=True)
        return rules.delay_s(self._agent)

    async def close(self) -> None:
        """End what is under way."""
        tasks = [task for _, task in self._sites.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _rules(self, origin: URL) -> _Rules:
        until, task = self._sites.get(origin, (0.0, None))
        if task is None or (task.done() and self._clock() >= until):
            task = asyncio.create_task(self._load(origin))
            self._sites[origin] = (0.0, task)
        # All who wait share one fetch, and it goes on if one of them is cancelled.
        return await asyncio.shield(task)

    async def _load(self, origin: URL) -> _Rules:
        rules = await self._fetched(origin)
        keep_s = _KEEP_FAILED_S if rules.failed else _KEEP_S
        task = asyncio.current_task()
        assert task is not None
        self._sites[origin] = (self._clock() + keep_s, task)
        return rules

    async def _fetched(self, origin: URL) -> _Rules:
        try:
            url = str(origin.join(URL("/robots.txt")))
            page = await self._fetcher.fetch(url, monotonic_us, None)
        except Failure as failed:
            return _without_file(failed)
        text = page.body.decode("utf-8-sig", errors="replace").lstrip("\ufeff")
        if len(text) < _LONG:
            return _Rules(parsed=Protego.parse(text))
        return _Rules(parsed=await asyncio.to_thread(Protego.parse, text), is_long=True)


def _without_file(failed: Failure) -> _Rules:
    status = failed.status
    if status.startswith("http_5") or status == failure.http_status(429):
        detail = f"answered {status.removeprefix('http_')}"
        return _Rules(failed=Failure(failure.ROBOTS_UNREACHABLE, detail))
    if status.startswith("http_") or status == failure.TOO_MANY_REDIRECTS:
        return _Rules()
    return _Rules(failed=failed)
