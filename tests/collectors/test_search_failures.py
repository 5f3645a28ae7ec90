"""Searches of a site that fail in part: what is remembered, what is met anew, what is said."""

import asyncio
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from s2l.collectors.failure import Failure
from s2l.collectors.searching.links import LinkSearch
from s2l.collectors.searching.site import SiteSearch
from s2l.collectors.searching.sitemap import SitemapSearch
from s2l.workloads.query import Query

sys.path.insert(0, str(Path(__file__).parent))
from hostile_site import HostileSite
from private_fetcher import private_fetcher
from search_services import FETCHED, pages

SORT = Query("q", "How does a heap sort?")
SEED = '<a href="/heap">How a heap sorts</a>'


class _Failing:
    """A site whose every page answers with the next status of its list, then as it should."""

    def __init__(self, *statuses: int) -> None:
        self.asked: Counter[str] = Counter()
        self._statuses = list(statuses)
        self.let_go = asyncio.Event()
        self.let_go.set()

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked[request.path] += 1
        await self.let_go.wait()
        if self._statuses:
            return web.Response(status=self._statuses.pop(0))
        return web.Response(text=SEED, content_type="text/html")


@pytest.mark.parametrize("status", [503, 429, 408, 500])
async def test_a_seed_that_failed_in_passing_is_read_by_the_next_question(status: int) -> None:
    site = _Failing(status)
    async with TestServer(site.app()) as server, private_fetcher() as fetcher:
        search = LinkSearch(fetcher, [str(server.make_url("/"))])
        with pytest.raises(Failure, match=f"http_{status}"):
            await search.search(SORT, 7)
        assert len(await search.search(SORT, 7)) == 1
        assert site.asked["/"] == 2


@pytest.mark.parametrize("status", [404, 403, 410])
async def test_a_failure_that_lasts_is_remembered_and_raised_as_its_own(status: int) -> None:
    site = _Failing(status)
    raised = []
    async with TestServer(site.app()) as server, private_fetcher() as fetcher:
        search = LinkSearch(fetcher, [str(server.make_url("/"))])
        for _ in range(3):
            with pytest.raises(Failure) as failed:
                await search.search(SORT, 7)
            raised.append(failed.value)
        assert site.asked["/"] == 1
    assert len({id(one) for one in raised}) == 3
    assert {(one.status, one.url) for one in raised} == {(f"http_{status}", raised[0].url)}


async def test_questions_that_wait_for_one_page_share_its_failure() -> None:
    site = _Failing(*[503] * 8)
    async with TestServer(site.app()) as server, private_fetcher() as fetcher:
        search = LinkSearch(fetcher, [str(server.make_url("/"))])
        site.let_go.clear()
        with ThreadPoolExecutor(1) as in_turn:
            asyncio.get_running_loop().set_default_executor(in_turn)
            asking = [asyncio.create_task(search.search(SORT, 7)) for _ in range(8)]
            await asyncio.sleep(0)
            await asyncio.to_thread(int)  # all have ranked before this, and wait for the page now
            site.let_go.set()
            found = await asyncio.gather(*asking, return_exceptions=True)
        assert [one.status for one in found if isinstance(one, Failure)] == ["http_503"] * 8
        assert site.asked["/"] == 1


async def test_a_seed_given_twice_fails_once() -> None:
    async with TestServer(pages({})) as server, private_fetcher() as fetcher:
        root = str(server.make_url("/"))
        with pytest.raises(Failure, match="http_404"):
            await LinkSearch(fetcher, [root, f"{root}#again"]).search(SORT, 7)


def _index(root: str, n: int) -> tuple[str, str]:
    entries = "".join(f"<sitemap><loc>{root}{i}.txt</loc></sitemap>" for i in range(n))
    return "text/xml", f"<sitemapindex>{entries}</sitemapindex>"


async def test_of_a_long_index_of_sitemaps_the_first_are_read() -> None:
    files: dict[str, Any] = {}
    async with TestServer(pages(files)) as server, private_fetcher() as fetcher:
        root = str(server.make_url("/"))
        files["/index.xml"] = _index(root, 600)
        files |= {f"/{i}.txt": ("text/plain", f"{root}heap/{i}") for i in range(600)}
        search = SitemapSearch(fetcher, f"{root}index.xml")
        hits = await search.search(SORT, 1000)
        assert {hit.url for hit in hits} == {f"{root}heap/{i}" for i in range(499)}
        assert len(server.app[FETCHED]) == 500


async def test_a_sitemap_without_pages_of_its_site_is_a_failure() -> None:
    files = {"/map.txt": ("text/plain", "http://elsewhere.example/heap")}
    async with TestServer(pages(files)) as server, private_fetcher() as fetcher:
        search = SitemapSearch(fetcher, str(server.make_url("/map.txt")))
        with pytest.raises(Failure, match=r"bad_answer: no page of 127\.0\.0\.1:"):
            await search.search(SORT, 7)


async def test_a_failed_search_does_not_tell_its_address() -> None:
    async with HostileSite() as site, private_fetcher() as fetcher:
        for path in ("/not-http", "/big-header", "/many-headers", "/missing"):
            search = SiteSearch(fetcher, f"{site.url}{path}?key=canary7c1f&q={{query}}")
            with pytest.raises(Failure) as failed:
                await search.search(SORT, 7)
            assert "canary" not in failed.value.detail
        assert len(site.requests) == 4
