"""Sites that ask to be left alone: whom they mean, and who was waiting already."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from s2l.collectors.failure import Failure
from s2l.collectors.fetching.fetcher import Fetcher
from s2l.collectors.fetching.page import Fetched, monotonic_us
from s2l.collectors.politeness.gate import PoliteGate
from s2l.collectors.politeness.manners import RetryPolicy
from s2l.collectors.politeness.retrying import Retrying
from s2l.collectors.politeness.throttle import Throttle

sys.path.insert(0, str(Path(__file__).parent))
from hostile_site import PAGE, HostileSite


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as running:
        yield running


async def _polite(stack: AsyncExitStack, policy: RetryPolicy, delay_s: float) -> Retrying:
    """Two at once at a site, as a crawl has it."""
    throttle = Throttle(concurrency=64, per_site=2, delay_s=delay_s)
    gate = PoliteGate(throttle, longest_s=policy.longest_s)
    fetcher = await stack.enter_async_context(Fetcher(allow_private=True, gate=gate))
    return Retrying(fetcher, policy, throttle)


@pytest.mark.parametrize("delay_s", [0.0, 0.02])
async def test_who_waits_already_is_told_that_it_takes_too_long(
    stack: AsyncExitStack, delay_s: float
) -> None:
    site = await stack.enter_async_context(HostileSite())
    fetcher = await _polite(stack, RetryPolicy(), delay_s)
    urls = [f"{site.url}/slow/{n}" for n in range(6)]
    pages = [fetcher.fetch(url, monotonic_us) for url in (f"{site.url}/held/86400", *urls)]
    async with asyncio.timeout(10):
        found = await asyncio.gather(*pages, return_exceptions=True)
    assert [one.status for one in found if isinstance(one, Failure)] == [
        "http_503",
        *["retry_later"] * (6 - sum(isinstance(one, Fetched) for one in found)),
    ]
    # Those under way when the answer came are let through, and no more.
    assert len(site.requests) <= 3


async def test_a_longer_hold_reaches_those_who_sleep_for_a_shorter_one() -> None:
    throttle = Throttle(concurrency=1, per_site=1, delay_s=0.0)
    throttle.hold("a:80", 0.5)

    async def visit() -> None:
        async with throttle.turn("a:80", longest_s=1.0):
            raise AssertionError("it is held")

    waiting = asyncio.create_task(visit())
    await asyncio.sleep(0)
    throttle.hold("a:80", 3600.0)
    async with asyncio.timeout(5):
        with pytest.raises(Failure, match=r"retry_later: the site says in 3[56]\d\d s"):
            await waiting
    assert throttle.waiting() == {}


async def test_the_site_that_asks_for_time_is_the_one_that_gets_it(stack: AsyncExitStack) -> None:
    first = await stack.enter_async_context(HostileSite())
    second = await stack.enter_async_context(HostileSite())
    first.away = f"{second.url}/held/120"
    fetcher = await _polite(stack, RetryPolicy(attempts=1, longest_s=2.0), 0.0)
    with pytest.raises(Failure, match="http_503") as failed:
        await fetcher.fetch(f"{first.url}/away", monotonic_us)
    assert failed.value.url == first.away
    page = await fetcher.fetch(f"{first.url}/page", monotonic_us)
    assert page.body == PAGE.encode()
    with pytest.raises(Failure, match="retry_later"):
        await fetcher.fetch(f"{second.url}/page", monotonic_us)
    assert second.requests == ["/held/120"]
