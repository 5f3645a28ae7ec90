"""What takes long does not run where arrivals are stamped: counted in CPU time, as load does not
change that."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp.test_utils import TestServer
from yarl import URL

from s2l.collectors.politeness.robots import Robots
from s2l.collectors.searching.links import LinkSearch
from s2l.collectors.searching.page_links import MOST_LINKS
from s2l.collectors.searching.sitemap import SitemapSearch
from s2l.workloads.query import Query

sys.path.insert(0, str(Path(__file__).parent))
from private_fetcher import private_fetcher
from search_services import pages

_QUESTION = Query("q", "Which module of the library has a page on heaps?")


async def _share_of_loop(work: Awaitable[Any]) -> tuple[float, Any]:
    """How much of the work's CPU time the loop's own thread took, and the work's result."""
    loop_s, all_s = time.thread_time(), time.process_time()
    result = await work
    return (time.thread_time() - loop_s) / (time.process_time() - all_s), result


@asynccontextmanager
async def _sitemap(urls: int) -> AsyncIterator[SitemapSearch]:
    files: dict[str, Any] = {}
    async with TestServer(pages(files)) as server, private_fetcher() as fetcher:
        root = str(server.make_url("/"))
        lines = "\n".join(f"{root}library/module{i}/heap-page.html" for i in range(urls))
        files["/map.txt"] = ("text/plain", lines)
        yield SitemapSearch(fetcher, f"{root}map.txt")


async def test_while_a_sitemap_is_read_and_ranked() -> None:
    async with _sitemap(30_000) as search:
        for _ in ("read and ranked", "ranked"):
            share, hits = await _share_of_loop(search.search(_QUESTION, 7))
            assert len(hits) == 7
            assert share < 0.2


async def test_while_links_are_followed() -> None:
    words = "a page of the library on heaps and modules"
    files = {
        f"/{page}": "".join(
            f'<a href="/{page}{i}">{words} {i}</a>' for i in range(1, MOST_LINKS + 1)
        )
        for page in ("a", "b", "c", "d")
    }
    async with TestServer(pages(files)) as server, private_fetcher() as fetcher:
        seeds = [str(server.make_url(path)) for path in files]
        search = LinkSearch(fetcher, seeds)
        share, hits = await _share_of_loop(search.search(_QUESTION, 7))
    assert len(hits) == 7
    assert share < 0.2


async def test_while_a_long_robots_txt_is_looked_up() -> None:
    rules = "".join(f"Disallow: /*/page{i}*/x\n" for i in range(20_000))
    files = {"/robots.txt": ("text/plain", f"User-agent: *\n{rules}")}
    async with TestServer(pages(files)) as server, private_fetcher() as fetcher:
        robots = Robots(fetcher, "s2l-crawl")
        await robots.delay_s(URL(server.make_url("/")))
        urls = [URL(server.make_url(f"/a/page{i}")) for i in range(20)]
        asking = asyncio.gather(*map(robots.delay_s, urls))
        share, delays_s = await _share_of_loop(asking)
        await robots.close()
    assert delays_s == [0.0] * 20
    assert share < 0.2
