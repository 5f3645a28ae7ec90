"""A crawl on several workers: the questions are shared out, and so are the manners."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from s2l.collecting.crawl_capture import crawler, open_search, site_up
from s2l.collecting.crawl_display import crawl_display
from s2l.collecting.crawl_options import CrawlOptions
from s2l.collecting.crew import ScaledCapture, Show
from s2l.collecting.kept_options import keep_options
from s2l.collecting.run import Outcome, capture_with
from s2l.collecting.watch import Watch
from s2l.collectors.collect import Progress, collect
from s2l.collectors.searching.base import SearchError
from s2l.replayer.scale_out.clock_offset import boot_id
from s2l.scale import Scale
from s2l.workloads.query import Query
from s2l.workloads.trace_writer import TraceWriter


@dataclass(frozen=True, slots=True)
class CrawlJob:
    """One worker's questions. ``demo_search`` is the search address of the demo site, which runs
    on the machine ``demo_boot_id``; ``extract_workers`` as in ``CrawlSettings``."""

    queries: tuple[Query, ...]
    options: CrawlOptions
    licence: str
    demo_search: str | None
    demo_boot_id: str
    extract_workers: int | None

    async def capture(self, path: Path, watch: Watch) -> None:
        """Crawl. Raises what ``crawl_into`` does, and SearchError for a demo site elsewhere."""
        if self.demo_search is not None and self.demo_boot_id != boot_id():
            raise SearchError(
                f"the demo site cannot be reached from {socket.gethostname()}; leave out --ray, or "
                "name a site with --search-url"
            )
        watch.update(Progress(0, len(self.queries), {}))
        opened = open_search(self.options, self.demo_search, extract_workers=self.extract_workers)
        async with opened as crawl:
            watch.waiting = crawl.waiting
            with TraceWriter.create(
                path, name=path.name, collector=crawler(self.options), licence=self.licence
            ) as writer:
                await collect(
                    self.queries,
                    crawl.collector,
                    writer,
                    concurrency=self.options.concurrency,
                    progress=watch.update,
                    first_offset_us=await watch.begin(),
                    stop=watch.stop,
                )
                writer.finish()  # drained or not: it is a part


async def crawl_with(
    scale: Scale, path: Path, queries: Sequence[Query], options: CrawlOptions, *, licence: str
) -> Outcome:
    """Crawl into a new trace folder, on several workers.

    A site is asked no more than by one: requests at once are shared out, and each worker lets as
    many times as long pass between two starts, by our delay or by that of robots.txt, which each
    reads itself. What a site or a search service answers under load (to ask later) holds for the
    worker that it is said to; the others learn it by their own next request.

    Raises what ``crawl_into`` does; RayMissing, WorkerLost.
    """
    scale.check_limit("--concurrency", options.concurrency)
    options = replace(options, workers=scale.workers)
    async with site_up(options) as (options, demo_search):
        jobs = [
            CrawlJob(
                share,
                _own(options, scale, worker),
                licence,
                demo_search,
                boot_id(),
                None if scale.address else _extract_workers(scale.workers),
            )
            for worker, share in enumerate(scale.shares(queries))
        ]
        with scale.crew() as crew, crawl_display(len(queries), dict) as display:

            def shown(capture: ScaledCapture) -> Show:
                display.waiting = capture.waiting
                return display.update

            outcome = await capture_with(
                crew,
                jobs,
                queries,
                path,
                collector=crawler(options),
                licence=licence,
                display=shown,
            )
            if not outcome.finished:
                keep_options(path, options)
            return outcome


def _own(options: CrawlOptions, scale: Scale, worker: int) -> CrawlOptions:
    """One worker's, with a cache that is found from any folder."""
    return replace(
        options,
        concurrency=scale.share_of(options.concurrency, worker),
        cache=str(Path(options.cache).absolute()) if options.cache else None,
    )


def _extract_workers(workers: int) -> int:
    """Processes that extract text, for each of several crawls on this machine."""
    return max(1, ((os.cpu_count() or 2) - 1) // workers)
