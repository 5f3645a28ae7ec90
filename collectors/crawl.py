"""The crawl collector: search, then fetch every hit at once; each page arrives when it is text."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from s2l.collectors.collect import OnProgress, Progress, collect
from s2l.collectors.extractor import Extractor
from s2l.collectors.failure import Failure
from s2l.collectors.fetch import Fetched, Fetcher, FetchLimits, PageFetcher
from s2l.collectors.record import Clock, Recorder
from s2l.collectors.record_log import TraceSink
from s2l.collectors.search import SearchHit, SearchProvider, search_provider
from s2l.workloads.arrival import ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.query import Query


class CrawlCollector:
    """Retrieves as a web search agent does.

    The ``search`` arrival has the hits in its ``meta``. Each page is one ``append``, failed or
    not, with ``url`` and ``rank`` (0 is the best hit) in its ``meta``, and durations in
    microseconds: ``first_byte_us`` and ``fetch_us`` from the request to the headers and to the
    end of the body, ``extract_us`` from there to the text, the wait for a free worker included.
    """

    def __init__(
        self, search: SearchProvider, fetcher: PageFetcher, extractor: Extractor, *, hits: int = 7
    ) -> None:
        self._search = search
        self._fetcher = fetcher
        self._extractor = extractor
        self._hits = hits

    async def retrieve(self, query: Query, record: Recorder) -> None:
        """Search and fetch for one query."""
        hits = await self._find(query, record)
        async with asyncio.TaskGroup() as pages:
            for rank, hit in enumerate(hits):
                pages.create_task(self._retrieve_page(hit, rank, record))

    async def _find(self, query: Query, record: Recorder) -> list[SearchHit]:
        start_us = record.now_us()
        try:
            hits = await self._search.search(query.text, self._hits)
        except Failure as failed:
            record.arrived(
                ArrivalKind.SEARCH, start_us=start_us, status=failed.status, detail=failed.detail
            )
            return []
        meta = {"hits": [asdict(hit) for hit in hits]}
        record.arrived(ArrivalKind.SEARCH, start_us=start_us, meta=meta)
        return hits

    async def _retrieve_page(self, hit: SearchHit, rank: int, record: Recorder) -> None:
        start_us = record.now_us()
        meta: dict[str, Any] = {"url": hit.url, "rank": rank}
        documents: tuple[Document, ...] = ()
        status: dict[str, str] = {}
        try:
            page = await self._fetcher.fetch(hit.url, record.now_us)
            meta["first_byte_us"] = page.first_byte_us - start_us
            meta["fetch_us"] = page.body_us - start_us
            documents = (await self._document(page, hit),)
            meta["extract_us"] = record.now_us() - page.body_us
        except Failure as failed:
            status = {"status": failed.status, "detail": failed.detail}
        record.arrived(
            ArrivalKind.APPEND, start_us=start_us, documents=documents, meta=meta, **status
        )

    async def _document(self, page: Fetched, hit: SearchHit) -> Document:
        fetched_utc = datetime.now(UTC).isoformat(timespec="seconds")
        found = await self._extractor.extract(page)
        return Document.of_text(
            url=page.url,
            title=found.title or hit.title,
            text=found.text,
            mime=page.mime,
            fetched_utc=fetched_utc,
        )


async def collect_crawl(
    queries: Sequence[Query],
    search_url: str,
    writer: TraceSink,
    *,
    provider: str = "site",
    hits: int = 7,
    concurrency: int = 8,
    limits: FetchLimits | None = None,
    extract_workers: int | None = None,
    clock: Clock = time.monotonic_ns,
    progress: OnProgress | None = None,
) -> Progress:
    """Crawl for every query and record it into ``writer``, which is flushed but not finished.

    ``search_url`` is the provider's address with ``{query}`` and ``{n}`` in it. Worker processes
    are warm before the first query starts. See ``collect`` for cancellation and ``progress``.

    Raises:
        ValueError: a bad provider name, search URL, or number of hits or queries at a time.
        ExtractorError: the worker processes do not start.
    """
    if hits < 1:
        raise ValueError(f"hits is {hits}: give 1 or more")
    async with Fetcher(limits) as fetcher:
        search = search_provider(provider, fetcher, search_url)
        async with Extractor(workers=extract_workers) as extractor:
            collector = CrawlCollector(search, fetcher, extractor, hits=hits)
            return await collect(
                queries, collector, writer, concurrency=concurrency, clock=clock, progress=progress
            )
