"""Keys in addresses and paths of this machine serve a crawl, and are in nothing that is shared."""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import click
import pyarrow.parquet as pq
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from s2l.collecting.crawl import crawl_with
from s2l.collecting.crawl_capture import crawl_into, crawl_on
from s2l.collecting.crawl_options import CrawlOptions
from s2l.workloads.query import Query
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import recover

sys.path.insert(0, str(Path(__file__).parent))
from thread_crew import InThreads

CANARY = "canary7c1f9e"
FOLDER = "pages-of-mine"
QUERIES = [Query(f"q{number}", f"question {number}") for number in range(24)]


class Site:
    """A site whose search needs a key. The first question interrupts this process."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.refused = 0
        self.url = ""

    async def find(self, request: web.Request) -> web.Response:
        self.refused += request.query.get("key") != CANARY
        self.asked["/find"] += 1
        if self.asked["/find"] == 1:
            os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.1)  # a search that is slow: the questions outlast the interruption
        return web.json_response({"hits": [{"url": f"{self.url}heap"}]})

    async def heap(self, request: web.Request) -> web.Response:
        self.asked["/heap"] += 1
        return web.Response(text="<p>A heap sorts by taking the least.", content_type="text/html")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    running, app = Site(), web.Application()
    app.router.add_get("/find", running.find)
    app.router.add_get("/heap", running.heap)
    async with TestServer(app) as server:
        running.url = str(server.make_url("/"))
        yield running


def _options(site: Site, folder: Path) -> CrawlOptions:
    return CrawlOptions(
        search_urls=(f"{site.url}find?q={{query}}&key={CANARY}",),
        own_site=True,
        concurrency=2,
        cache=str(folder / FOLDER),
    )


async def _begin(path: Path, options: CrawlOptions, workers: int) -> bool:
    """Crawl until it is interrupted; whether it came to its end."""
    if workers == 1:
        return await crawl_into(path, QUERIES, options, licence="CC0-1.0")
    crew = InThreads(workers)
    return (await crawl_with(crew, path, QUERIES, options, licence="CC0-1.0")).finished


def _telling_files(folder: Path) -> list[str]:
    """The names of files in which the key or the cache's path can be read."""
    found = []
    for file in sorted(folder.rglob("*")):
        text = file.read_bytes().decode("latin-1") if file.is_file() else ""
        if file.suffix == ".parquet":
            text += repr(pq.read_table(file).to_pylist())
        if CANARY in text or FOLDER in text:
            found.append(file.name)
    return found


@pytest.mark.parametrize("workers", [1, 2])
async def test_an_interrupted_crawl_goes_on_with_its_key_and_shares_none(
    site: Site, tmp_path: Path, workers: int
) -> None:
    path = tmp_path / "trace"
    assert not await _begin(path, _options(site, tmp_path), workers)
    [kept] = path.rglob("crawl.json")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert _telling_files(path) == [kept.name]
    pages = site.asked["/heap"]
    assert await crawl_on(path)
    assert (site.asked["/find"], site.refused) == (len(QUERIES), 0)
    assert site.asked["/heap"] == pages  # it came out of the cache
    assert _telling_files(path) == []
    manifest = Trace.open(path).manifest
    assert manifest.counts.finished_queries == len(QUERIES)
    options = manifest.collector.options
    assert options["search_urls"] == [f"{site.url}find?q={{query}}&key=***"]
    assert options["cache"] == "***"


async def test_without_what_it_was_begun_with_it_is_not_resumed(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    assert not await _begin(path, _options(site, tmp_path), 1)
    [kept] = path.rglob("crawl.json")
    kept.write_bytes(b"{")
    with pytest.raises(click.UsageError, match=r"crawl\.json: damaged"):
        await crawl_on(path)
    kept.unlink()
    with pytest.raises(click.UsageError, match="cannot be resumed, keys in its addresses"):
        await crawl_on(path)
    assert recover(path).counts.finished_queries > 0
    assert _telling_files(path) == []


async def test_nothing_is_kept_where_nothing_is_hidden(site: Site, tmp_path: Path) -> None:
    options = CrawlOptions(search_urls=(f"{site.url}find?q={{query}}",), own_site=True)
    assert not await _begin(tmp_path / "trace", options, 1)
    assert list(tmp_path.rglob("crawl.json")) == []
    assert await crawl_on(tmp_path / "trace")
