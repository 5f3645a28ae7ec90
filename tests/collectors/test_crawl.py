import asyncio
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
from aiohttp.test_utils import TestServer

from s2l.collectors.collect import Progress
from s2l.collectors.crawl_settings import CrawlSettings
from s2l.collectors.demo_site.latency import LatencyProfile
from s2l.collectors.demo_site.pages import build_pages
from s2l.collectors.demo_site.site import Site
from s2l.workloads.arrival import OK, ArrivalKind
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter, recover

sys.path.insert(0, str(Path(__file__).parent))
from collecting_crawl import collect_crawl

_HOME = CrawlSettings.at_home(extract_workers=1)
_QUERIES = [
    Query("wrap", "What is the default width of textwrap.wrap?", ("70",)),
    Query("dumps", "What does ensure_ascii do in json.dumps?"),
    Query("heap", "How does heapq.heapify work?"),
]


def _writer(path: Path) -> TraceWriter:
    crawl = Collector("crawl", "0", {"hits": 7}, seed=0)
    return TraceWriter.create(path, name="test", collector=crawl, licence="Apache-2.0")


async def test_a_crawl_is_read_back_as_it_was(demo_site: Any, tmp_path: Path) -> None:
    readings: list[int] = []

    def clock() -> int:
        readings.append(time.monotonic_ns())
        return readings[-1]

    with _writer(tmp_path / "trace") as writer:
        done = await collect_crawl(
            _QUERIES, demo_site.search_url, writer, settings=_HOME, clock=clock
        )
        writer.finish()
    assert (done.done, done.total, done.failures) == (3, 3, {})
    trace = Trace.open(tmp_path / "trace")
    documents = {document.doc_id: document for document in trace.documents()}
    retrievals = list(trace.retrievals())
    assert [(r.query.query_id, r.query.text, r.query.answers) for r in retrievals] == [
        (query.query_id, query.text, query.answers) for query in _QUERIES
    ]
    served = {str(line["target"]): line for line in demo_site.log_lines()}
    for retrieval in retrievals:
        search, *pages, end = retrieval.arrivals
        hits = [hit["url"] for hit in search.meta["hits"]]
        assert retrieval.finished
        assert (search.kind, end.kind) == (ArrivalKind.SEARCH, ArrivalKind.END)
        assert sorted(page.meta["url"] for page in pages) == sorted(hits)
        assert [arrival.seq for arrival in retrieval.arrivals] == list(range(9))
        times = [arrival.arrival_us for arrival in retrieval.arrivals]
        assert times == sorted(times)
        start_ns = readings[0] + retrieval.query.offset_us * 1000
        for page in pages:
            assert hits[page.meta["rank"]] == page.meta["url"]
            [doc_id] = page.doc_ids
            document = documents[doc_id]
            assert document.url == page.meta["url"]
            assert document.text
            assert document.title.startswith(document.url.rpartition("/")[2][: -len(".html")])
            line = served[document.url.removeprefix(demo_site.url)]
            # offset_us and arrival_us are rounded down to a microsecond each.
            after_ns = start_ns + page.arrival_us * 1000 + 2000 - line["last_byte_ns"]
            assert 0 < after_ns < 2e9
            assert 0 < page.meta["first_byte_us"] <= page.meta["fetch_us"]
            body_us = page.start_us + page.meta["fetch_us"]
            assert 0 <= page.arrival_us - body_us - page.meta["extract_us"] < 50_000


async def test_pages_and_searches_that_fail_become_rows(sink: Any) -> None:
    profile = LatencyProfile(speed=1000, failure_rate=0.5)
    async with TestServer(Site(build_pages(["textwrap"]), profile, lambda line: None).app()) as web:
        url = str(web.make_url("/search")) + "?q={query}&n={n}"
        done = await collect_crawl(_QUERIES[:1], url, sink, hits=6, settings=_HOME)
        _, *pages, _ = sink.arrivals("wrap")
        fails = Counter(
            profile.page(f"/{page.meta['url'].rpartition('/')[2]}").fails for page in pages
        )
        assert fails[True] > 0
        assert fails[False] > 0
        assert Counter(page.status for page in pages) == {"http_503": fails[True], OK: fails[False]}
        assert done.failures == {"http_503": fails[True]}
        assert all(bool(page.doc_ids) == (page.status == OK) for page in pages)
    # The server is gone: now the search itself fails, and the query still ends.
    await collect_crawl([Query("none", "?")], url, sink, settings=_HOME)
    assert [(a.kind, a.status) for a in sink.arrivals("none")] == [
        (ArrivalKind.SEARCH, "connect"),
        (ArrivalKind.END, OK),
    ]


def _start_crawl(search_url: str, folder: Path) -> subprocess.Popen[bytes]:
    script = Path(__file__).with_name("crawl_until_stopped.py")
    command = [sys.executable, str(script), search_url, str(folder / "trace")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _read_until_kept(crawl: subprocess.Popen[bytes], n: int) -> list[int]:
    """Wait until ``n`` queries are on disk; the process ids of its workers."""
    assert crawl.stdout is not None
    for line in crawl.stdout:
        told = json.loads(line)
        if told["ended"] >= n:
            return list(told["workers"])
    raise AssertionError("the crawl ended")


def test_what_was_flushed_survives_a_killed_crawl(demo_site: Any, tmp_path: Path) -> None:
    with _start_crawl(demo_site.search_url, tmp_path) as crawl:
        workers = [psutil.Process(pid) for pid in _read_until_kept(crawl, 3)]
        os.kill(crawl.pid, signal.SIGKILL)
    assert len(workers) == 1
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert [worker for worker in alive if worker.status() != psutil.STATUS_ZOMBIE] == []
    manifest = recover(tmp_path / "trace")
    assert manifest.counts.finished_queries >= 3
    assert 0 <= manifest.counts.incomplete_queries <= 4
    trace = Trace.open(tmp_path / "trace")
    known = {document.doc_id for document in trace.documents()}
    for retrieval in trace.retrievals():
        assert [arrival.seq for arrival in retrieval.arrivals] == list(
            range(len(retrieval.arrivals))
        )
        assert {doc_id for arrival in retrieval.arrivals for doc_id in arrival.doc_ids} <= known


def test_what_had_arrived_survives_an_interrupted_crawl(demo_site: Any, tmp_path: Path) -> None:
    with _start_crawl(demo_site.search_url, tmp_path) as crawl:
        _read_until_kept(crawl, 3)
        crawl.send_signal(signal.SIGINT)
        _, errors = crawl.communicate(timeout=20)
    assert errors.decode().strip().splitlines()[-1] == "KeyboardInterrupt"
    assert b"Process Spawn" not in errors
    counts = recover(tmp_path / "trace").counts
    assert counts.finished_queries >= 3
    assert 1 <= counts.incomplete_queries <= 4


async def test_nothing_is_left_running(demo_site: Any, sink: Any) -> None:
    before = set(multiprocessing.active_children())
    workers: list[int] = []

    def look(progress: Progress) -> None:
        started = set(multiprocessing.active_children()) - before
        workers.extend(child.pid for child in started if child.pid)

    await collect_crawl(
        _QUERIES[:1], demo_site.search_url, sink, settings=CrawlSettings.at_home(2), progress=look
    )
    assert len(set(workers)) == 2
    async with asyncio.timeout(10):
        while any(psutil.pid_exists(pid) for pid in workers):
            await asyncio.sleep(0.01)
