"""Kept pages: whole or none, and as late as they came, for searches too."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from s2l.collectors.fetching.fetcher import Fetcher
from s2l.collectors.fetching.page import monotonic_us
from s2l.collectors.politeness.page_cache import PageCache
from s2l.collectors.searching.api_client import ApiClient
from s2l.collectors.searching.registry import Access, SearchSettings, search_provider
from s2l.workloads.query import Query

sys.path.insert(0, str(Path(__file__).parent))
from hostile_site import PAGE, HostileSite
from private_fetcher import private_fetcher
from search_services import FETCHED, pages

_RESULTS = '<html><body><p><a href="/heap">How a heap sorts</a></p></body></html>'


@pytest.mark.parametrize(
    ("name", "path"), [("site", "find?q={query}"), ("sitemap", "map.txt"), ("links", "")]
)
async def test_a_search_out_of_the_cache_takes_as_long_as_it_took(
    tmp_path: Path, name: str, path: str
) -> None:
    files: dict[str, Any] = {"/find": _RESULTS, "/": _RESULTS, "/heap": _RESULTS}
    async with TestServer(pages(files, wait_s=0.1)) as site:
        root = str(site.make_url("/"))
        files["/map.txt"] = ("text/plain", f"{root}heap\n")
        took_us = []
        for _ in range(2):
            provider = search_provider(name, SearchSettings((root + path,)))
            async with private_fetcher() as fetcher, PageCache(fetcher, tmp_path) as cache:
                start_us = monotonic_us()
                async with asyncio.timeout(20):  # a thousand times as long is more
                    hits = await provider(Access(cache, ApiClient())).search(Query("q", "heap"), 7)
                took_us.append(monotonic_us() - start_us)
            assert [hit.url for hit in hits] == [f"{root}heap"]
        asked = site.app[FETCHED]
        assert len(asked) == len(set(asked))  # the second time, all of it was kept
    assert took_us[1] >= 100_000


@pytest.mark.parametrize("left", [0, 63, 64, 65, 100, -1])
async def test_a_file_that_was_cut_is_asked_for_again(tmp_path: Path, left: int) -> None:
    async with HostileSite() as site, private_fetcher() as fetcher:
        for n in range(2):
            async with PageCache(fetcher, tmp_path) as cache:
                page = await cache.fetch(f"{site.url}/page", monotonic_us)
                assert (page.body, page.cached) == (PAGE.encode(), False)
            [file] = tmp_path.iterdir()
            assert site.asked_for("/page") == n + 1
            file.write_bytes(file.read_bytes()[:left])


async def test_a_byte_that_was_changed_is_seen(tmp_path: Path) -> None:
    async with HostileSite() as site, private_fetcher() as fetcher:
        for _ in range(3):
            async with PageCache(fetcher, tmp_path) as cache:
                page = await cache.fetch(f"{site.url}/page", monotonic_us)
                assert page.body == PAGE.encode()
            [file] = tmp_path.iterdir()
            file.write_bytes(file.read_bytes().replace(b"heron", b"crane"))
        assert site.asked_for("/page") == 3


class _Turns:
    """A gate where every request waits for its turn: as much of a clock as the test needs."""

    def __init__(self) -> None:
        self.now_us = 0

    def turn(self, url: object) -> "_Turns":
        return self

    async def __aenter__(self) -> None:
        self.now_us += 5_000

    async def __aexit__(self, *error: object) -> None:
        return


async def test_the_wait_for_a_page_that_has_not_changed_is_told(tmp_path: Path) -> None:
    gate, now_s = _Turns(), [0.0]
    async with HostileSite() as site, Fetcher(allow_private=True, gate=gate) as fetcher:
        for cached in (False, True):
            async with PageCache(fetcher, tmp_path, fresh_s=60, clock=lambda: now_s[0]) as cache:
                page = await cache.fetch(f"{site.url}/tagged", lambda: gate.now_us)
            assert (page.cached, page.wait_us) == (cached, 5_000)
            now_s[0] += 100
