"""A crawl of a site's own search, from questions to records."""

import time
from collections.abc import Sequence

from s2l.collectors.collect import OnProgress, Progress, collect
from s2l.collectors.crawl import open_crawl
from s2l.collectors.crawl_settings import CrawlSettings
from s2l.collectors.record import Clock
from s2l.collectors.record_log import TraceSink
from s2l.collectors.searching.registry import SearchSettings, search_provider
from s2l.workloads.query import Query


async def collect_crawl(
    queries: Sequence[Query],
    search_url: str,
    writer: TraceSink,
    *,
    settings: CrawlSettings,
    hits: int = 7,
    concurrency: int = 8,
    clock: Clock = time.monotonic_ns,
    progress: OnProgress | None = None,
) -> Progress:
    """Crawl for every query, with warm workers; ``writer`` is flushed but not finished."""
    search = search_provider("site", SearchSettings((search_url,)))
    async with open_crawl(search, settings, hits=hits) as crawl:
        return await collect(
            queries,
            crawl.collector,
            writer,
            concurrency=concurrency,
            clock=clock,
            progress=progress,
        )
