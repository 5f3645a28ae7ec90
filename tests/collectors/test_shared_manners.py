"""Several crawls that keep one set of manners together ask a site no more than one would."""

import asyncio
import time
from itertools import pairwise

import pytest

from s2l.collectors.crawl_settings import CrawlSettings
from s2l.collectors.page_fetching import PageFetching
from s2l.collectors.politeness.manners import Manners
from s2l.collectors.politeness.throttle import Throttle

DELAY_S = 0.03


async def _starts_s(throttle: Throttle, n: int, asked_s: float) -> list[float]:
    """When each of n requests to one site started."""
    starts: list[float] = []

    async def ask() -> None:
        async with throttle.turn("a:80", asked_s):
            starts.append(time.monotonic())

    await asyncio.gather(*(ask() for _ in range(n)))
    return sorted(starts)


@pytest.mark.parametrize("asked_s", [0.0, 0.05], ids=["our delay", "the site's delay"])
async def test_each_crawl_waits_as_many_times_as_long(asked_s: float) -> None:
    crawls = [Throttle(concurrency=6, per_site=3, delay_s=DELAY_S, crawls=3) for _ in range(3)]
    for starts in await asyncio.gather(*(_starts_s(crawl, 3, asked_s) for crawl in crawls)):
        gaps = [b - a for a, b in pairwise(starts)]
        assert min(gaps) >= 0.999 * 3 * max(asked_s, DELAY_S)


async def test_each_crawl_has_its_share_of_the_requests_at_once() -> None:
    throttle = Throttle(concurrency=64, per_site=5, delay_s=0.0, crawls=2)
    under_way, most = 0, 0

    async def ask() -> None:
        nonlocal under_way, most
        async with throttle.turn("a:80"):
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.001)
            under_way -= 1

    await asyncio.gather(*(ask() for _ in range(20)))
    assert most == 2  # 5 would be too many for two crawls of 3


async def test_a_crawl_is_opened_with_its_share() -> None:
    manners = Manners(per_site=4, delay_s=DELAY_S, crawls=2)
    async with PageFetching(CrawlSettings(manners=manners, extract_workers=1)) as fetching:
        starts = await _starts_s(fetching.throttle, 2, 0.0)
    assert starts[1] - starts[0] >= 0.999 * 2 * DELAY_S


@pytest.mark.parametrize("numbers", [{"per_site": 2}, {"concurrency": 2, "per_site": 9}])
def test_a_crawl_without_a_request_is_none(numbers: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="too few requests at once for 3 crawls"):
        Manners(crawls=3, **numbers)
