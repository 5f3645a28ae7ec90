"""This project: a whole capture, into a trace on disk, with ``concurrency`` requests at once."""

import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from meter import Meter, Task

from s2l.collectors.collect import Progress, collect
from s2l.collectors.crawl import open_crawl
from s2l.collectors.crawl_settings import CrawlSettings
from s2l.collectors.searching.registry import SearchSettings, search_provider
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter

PAGES_A_QUERY = 10


class StartOf:
    """A clock that remembers its first reading: the start of the trace."""

    first_ns: int | None = None

    def __call__(self) -> int:
        now_ns = time.monotonic_ns()
        if self.first_ns is None:
            self.first_ns = now_ns
        return now_ns


def queries_of(urls: Sequence[str]) -> list[Query]:
    """Ten pages a question, as a search would find them."""
    groups = [urls[at : at + PAGES_A_QUERY] for at in range(0, len(urls), PAGES_A_QUERY)]
    return [Query(f"q{n}", "?", meta={"urls": group}) for n, group in enumerate(groups)]


def bodies_ns(trace: Trace, start_ns: int) -> dict[str, int]:
    """By address, when the trace says that the last byte was there."""
    return {
        arrival.meta["url"]: start_ns
        + (one.query.offset_us + arrival.start_us + arrival.meta["fetch_us"]) * 1000
        for one in trace.retrievals()
        for arrival in one.arrivals
        if arrival.doc_ids
    }


async def main() -> None:
    task = Task.from_arguments()
    meter, clock = Meter(len(task.urls)), StartOf()
    home = CrawlSettings.at_home(extract_workers=task.workers)
    manners = replace(home.manners, concurrency=task.concurrency, per_site=task.concurrency)
    settings = replace(home, manners=manners)
    search = search_provider("urls", SearchSettings())

    def page(progress: Progress) -> None:
        if progress.texts > meter.pages:
            meter.page("")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        async with open_crawl(search, settings, hits=PAGES_A_QUERY) as crawl:
            with TraceWriter.create(
                path, name="bench", collector=Collector("crawl", "0"), licence="PSF-2.0"
            ) as writer:
                meter.start()
                await collect(
                    queries_of(task.urls),
                    crawl.collector,
                    writer,
                    # More than the requests at once: a query's last pages must not make gaps.
                    concurrency=2 * max(1, task.concurrency // PAGES_A_QUERY) + 1,
                    clock=clock,
                    progress=page,
                )
                writer.finish()
                trace = Trace.open(path)
                chars = sum(document.n_chars for document in trace.documents())
                bodies = (
                    bodies_ns(trace, clock.first_ns or 0)
                    if "S2L_BENCH_BODIES" in os.environ
                    else {}
                )
                meter.chars = chars
                meter.say(bodies_ns=bodies, failures=trace.manifest.counts.failures)


if __name__ == "__main__":
    asyncio.run(main())
