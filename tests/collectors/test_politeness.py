"""Manners: robots.txt, turns, retries and the page cache, against a server that counts."""

import asyncio
import itertools
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from yarl import URL

from s2l.collectors.failure import Failure
from s2l.collectors.fetching.fetcher import Fetcher
from s2l.collectors.fetching.limits import FetchLimits
from s2l.collectors.fetching.retry_after import retry_after_s
from s2l.collectors.politeness.gate import PoliteGate
from s2l.collectors.politeness.manners import Manners, RetryPolicy
from s2l.collectors.politeness.page_cache import PageCache
from s2l.collectors.politeness.retrying import Retrying
from s2l.collectors.politeness.robots import MOST_BYTES, Robots
from s2l.collectors.politeness.throttle import Throttle

sys.path.insert(0, str(Path(__file__).parent))
from hostile_site import PAGE, HostileSite


def _now_us() -> int:
    return time.monotonic_ns() // 1000


@pytest.fixture
async def site() -> AsyncIterator[HostileSite]:
    async with HostileSite() as running:
        yield running


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as running:
        yield running


async def _robots(stack: AsyncExitStack, clock: Callable[[], float] = time.monotonic) -> Robots:
    limits = FetchLimits(max_bytes=MOST_BYTES, cut_off=True)
    fetcher = await stack.enter_async_context(Fetcher(limits, allow_private=True))
    robots = Robots(fetcher, "s2l-crawl", clock=clock)
    stack.push_async_callback(robots.close)
    return robots


@pytest.mark.parametrize(
    ("status", "body", "path", "verdict"),
    [
        ("200 OK", b"User-agent: *\nDisallow: /\n", "/page", "robots_disallowed"),
        ("200 OK", b"\xef\xbb\xbfUser-agent: *\nDisallow: /\n", "/page", "robots_disallowed"),
        ("200 OK", b"User-agent: *\nDisallow: /\nAllow: /page\n", "/page", 0.0),
        ("200 OK", b"User-agent: *\nDisallow: /*?x=\n", "/page?x=1", "robots_disallowed"),
        ("200 OK", b"User-agent: other\nDisallow: /\n", "/page", 0.0),
        (
            "200 OK",
            b"User-agent: *\nDisallow:\n\nUser-agent: S2L-Crawl\nDisallow: /\n",
            "/page",
            "robots_disallowed",
        ),
        ("200 OK", b"User-agent: *\nCrawl-delay: 2.5\n", "/page", 2.5),
        ("200 OK", b"User-agent: *\nCrawl-delay: -2\n", "/page", 0.0),
        ("200 OK", b"\xff\xfe\x00<html>", "/page", 0.0),
        ("200 OK", b"#" * 600_000 + b"\nUser-agent: *\nDisallow: /\n", "/page", 0.0),
        ("404 Not Found", b"User-agent: *\nDisallow: /\n", "/page", 0.0),
        ("403 Forbidden", b"", "/page", 0.0),
        ("503 Service Unavailable", b"", "/page", "robots_unreachable"),
        ("429 Too Many Requests", b"", "/page", "robots_unreachable"),
    ],
)
async def test_robots_txt_is_read_as_the_standard_says(
    site: HostileSite,
    stack: AsyncExitStack,
    status: str,
    body: bytes,
    path: str,
    verdict: str | float,
) -> None:
    site.robots = (status, body)
    robots = await _robots(stack)
    if isinstance(verdict, float):
        assert await robots.delay_s(URL(site.url + path)) == verdict
        return
    with pytest.raises(Failure) as failed:
        await robots.delay_s(URL(site.url + path))
    assert (failed.value.status, failed.value.final) == (verdict, True)


async def test_robots_txt_is_asked_for_once_a_day_and_after_a_minute_where_it_failed(
    site: HostileSite, stack: AsyncExitStack
) -> None:
    now = [0.0]
    robots = await _robots(stack, lambda: now[0])
    url = URL(f"{site.url}/page")
    await asyncio.gather(*(robots.delay_s(url) for _ in range(5)))
    now[0] += 24 * 3600 - 1
    await robots.delay_s(url)
    assert site.asked_for("/robots.txt") == 1
    now[0] += 2
    site.robots = ("500 Internal Server Error", b"")
    for seconds in (0, 59, 2):
        now[0] += seconds
        with pytest.raises(Failure, match="answered 500"):
            await robots.delay_s(url)
    assert site.asked_for("/robots.txt") == 3


async def test_a_host_that_is_not_reached_fails_as_itself(stack: AsyncExitStack) -> None:
    robots = await _robots(stack)
    with pytest.raises(Failure, match=r"dns: robots\.txt: "):
        await robots.delay_s(URL("http://no-such-host.invalid/"))


async def test_requests_to_a_site_are_few_and_apart(
    site: HostileSite, stack: AsyncExitStack
) -> None:
    throttle = Throttle(concurrency=8, per_site=2, delay_s=0.04)
    fetcher = Fetcher(allow_private=True, gate=PoliteGate(throttle))
    await stack.enter_async_context(fetcher)
    pages = [fetcher.fetch(f"{site.url}/slow/{i}", _now_us) for i in range(6)]
    fetched = await asyncio.gather(*pages)
    assert site.most_at_once == 2
    gaps = [after - before for before, after in itertools.pairwise(site.started_s)]
    assert min(gaps) > 0.03
    # Two at a time take a tenth of a second each: the last pair waited for two before it.
    assert sorted(page.wait_us for page in fetched)[-1] > 150_000
    assert all(page.body_us - page.first_byte_us < 90_000 for page in fetched)
    assert throttle.waiting() == {}


async def test_a_slow_site_does_not_hold_up_another() -> None:
    throttle = Throttle(concurrency=1, per_site=1, delay_s=0.0)
    order: list[str] = []

    async def visit(site: str, delay_s: float = 0.0) -> None:
        async with throttle.turn(site, delay_s):
            order.append(site)

    await visit("slow", 0.2)
    waiting = asyncio.create_task(visit("slow"))
    await asyncio.sleep(0)
    assert throttle.waiting() == {"slow": 1}
    await visit("quick")
    await waiting
    assert order == ["slow", "quick", "slow"]


async def test_a_cancelled_wait_gives_its_place_back() -> None:
    throttle = Throttle(concurrency=1, per_site=1, delay_s=0.0)
    async with throttle.turn("a"):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02), throttle.turn("a"):
                pass
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02), throttle.turn("b"):
                pass
    async with asyncio.timeout(1), throttle.turn("a"):
        assert throttle.waiting() == {}


async def _retrying(stack: AsyncExitStack, policy: RetryPolicy) -> tuple[Retrying, Throttle]:
    throttle = Throttle(concurrency=8, per_site=8, delay_s=0.0)
    gate = PoliteGate(throttle, longest_s=policy.longest_s)
    limits = FetchLimits(first_byte_s=0.2)
    fetcher = await stack.enter_async_context(Fetcher(limits, allow_private=True, gate=gate))
    return Retrying(fetcher, policy, throttle), throttle


async def test_what_fails_in_passing_is_asked_for_again(
    site: HostileSite, stack: AsyncExitStack
) -> None:
    fetcher, _ = await _retrying(stack, RetryPolicy(backoff_s=0.04))
    page = await fetcher.fetch(f"{site.url}/flaky", _now_us)
    assert (page.body, page.attempts) == (PAGE.encode(), 3)
    # At least half of 40 and of 80 ms.
    assert page.wait_us > 60_000


@pytest.mark.parametrize(
    ("path", "status", "times"),
    [
        ("/busy", "http_503", 2),
        ("/silent", "first_byte_timeout", 2),
        ("/missing", "http_404", 1),
        ("/forbidden", "http_403", 1),
        ("/to-file", "bad_scheme", 1),
        ("/endless-body", "too_large", 1),
    ],
)
async def test_only_what_deserves_it_is_asked_for_again(
    site: HostileSite, stack: AsyncExitStack, path: str, status: str, times: int
) -> None:
    fetcher, _ = await _retrying(stack, RetryPolicy(attempts=2, backoff_s=0.0))
    with pytest.raises(Failure) as failed:
        await fetcher.fetch(site.url + path, _now_us)
    assert failed.value.status == status
    assert failed.value.meta.get("attempts", 1) == times
    assert site.asked_for(path) == times


def _is_held(throttle: Throttle, site: HostileSite) -> bool:
    try:
        throttle.check(f"127.0.0.1:{site.port}", 0.0)
    except Failure:
        return True
    return False


async def test_a_site_that_asks_for_time_is_left_alone_for_it(
    site: HostileSite, stack: AsyncExitStack
) -> None:
    fetcher, throttle = await _retrying(stack, RetryPolicy(backoff_s=0.0, longest_s=2.0))
    limited = asyncio.create_task(fetcher.fetch(f"{site.url}/limited/1", _now_us))
    while not _is_held(throttle, site):
        await asyncio.sleep(0.005)
    other = await fetcher.fetch(f"{site.url}/page", _now_us)
    page = await limited
    assert page.attempts == 2
    assert min(page.wait_us, other.wait_us) > 900_000


async def test_a_site_that_asks_for_an_hour_is_not_waited_for(
    site: HostileSite, stack: AsyncExitStack
) -> None:
    fetcher, _ = await _retrying(stack, RetryPolicy(longest_s=2.0))
    for path, status in (("/limited/3600", "http_429"), ("/page", "retry_later")):
        with pytest.raises(Failure) as failed:
            await fetcher.fetch(site.url + path, _now_us)
        assert failed.value.status == status
    assert site.requests == ["/limited/3600"]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("120", 120.0),
        (" 5 ", 5.0),
        ("-5", None),
        ("soon", None),
        ("9" * 400, 999999999.0),
        ("Wed, 21 Oct 2015 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0.0),
        ("Wed, 21 Oct 2015 07:28:30", 30.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    now = datetime(2015, 10, 21, 7, 28, tzinfo=UTC)
    assert retry_after_s(value, now) == seconds


async def test_a_kept_page_comes_again_as_late_as_it_came(
    site: HostileSite, stack: AsyncExitStack, tmp_path: Path
) -> None:
    fetcher = await stack.enter_async_context(Fetcher(allow_private=True))
    url = f"{site.url}/tagged"
    async with PageCache(fetcher, tmp_path / "pages") as cache:
        start_us = _now_us()
        first = await cache.fetch(url, _now_us)
        first_us = first.body_us - start_us
    async with PageCache(fetcher, tmp_path / "pages") as cache:
        start_us = _now_us()
        again = await cache.fetch(url, _now_us)
        again_us = again.body_us - start_us
    assert site.asked_for("/tagged") == 1
    assert (again.body, again.mime, again.url) == (first.body, first.mime, first.url)
    assert (first.cached, again.cached) == (False, True)
    assert first_us > 100_000
    assert 0 <= again_us - first_us < 20_000
    assert _now_us() >= again.body_us
    [file] = (tmp_path / "pages").iterdir()
    assert len(file.stem) == 64


async def test_an_old_page_is_asked_for_only_if_it_has_changed(
    site: HostileSite, stack: AsyncExitStack, tmp_path: Path
) -> None:
    fetcher = await stack.enter_async_context(Fetcher(allow_private=True))
    now = [1000.0]
    for cached in (False, True, True):
        async with PageCache(fetcher, tmp_path, fresh_s=60, clock=lambda: now[0]) as cache:
            page = await cache.fetch(f"{site.url}/tagged", _now_us)
        assert (page.body, page.cached) == (PAGE.encode(), cached)
        now[0] += 50 if site.asked_for("/tagged") == 2 else 100
    assert site.asked_for("/tagged") == 2
    assert [headers.get("if-none-match") for headers in site.headers] == [None, '"v1"']


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff\xfe\n", b'{"asked": "http://other/"}\n'])
async def test_a_damaged_file_is_as_none(
    site: HostileSite, stack: AsyncExitStack, tmp_path: Path, damage: bytes
) -> None:
    fetcher = await stack.enter_async_context(Fetcher(allow_private=True))
    for _ in range(2):
        async with PageCache(fetcher, tmp_path) as cache:
            page = await cache.fetch(f"{site.url}/page", _now_us)
            assert (page.body, page.cached) == (PAGE.encode(), False)
        [file] = tmp_path.iterdir()
        file.write_bytes(damage)


async def test_failures_are_not_kept(
    site: HostileSite, stack: AsyncExitStack, tmp_path: Path
) -> None:
    fetcher = await stack.enter_async_context(Fetcher(allow_private=True))
    async with PageCache(fetcher, tmp_path) as cache:
        with pytest.raises(Failure, match="http_403"):
            await cache.fetch(f"{site.url}/forbidden", _now_us)
    assert list(tmp_path.iterdir()) == []


async def test_the_user_agent_names_whom_to_write_to(site: HostileSite) -> None:
    manners = Manners(contact="https://example.org/crawl")
    async with Fetcher(allow_private=True, user_agent=manners.user_agent) as fetcher:
        await fetcher.fetch(f"{site.url}/page", _now_us)
    assert site.agents == {"s2l-crawl (+https://example.org/crawl)"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"contact": "me"}, "give a web or mail address"),
        ({"contact": "a@b.org\r\nX: y"}, "give a web or mail address"),
        ({"concurrency": 0}, "give 1 or more"),
        ({"per_site": 0}, "give 1 or more"),
        ({"delay_s": float("nan")}, "give 0 or more"),
    ],
)
def test_manners_that_cannot_be_meant_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Manners(**options)  # type: ignore[arg-type]
    for bad in ({"attempts": 0}, {"backoff_s": -1.0}, {"longest_s": float("nan")}):
        with pytest.raises(ValueError, match="give"):
            RetryPolicy(**bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="total_s is 0"):
        FetchLimits(total_s=0)
