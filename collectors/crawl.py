"""The crawl collector: search, then fetch every hit at once; each page arrives when it is text."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from s2l.collectors.crawl_settings import CrawlSettings
from s2l.collectors.failure import Failure
from s2l.collectors.page_fetching import PageFetching
from s2l.collectors.page_reader import PageReader, ReadPage
from s2l.collectors.record import Recorder
from s2l.collectors.searching.api_client import ApiClient
from s2l.collectors.searching.base import SearchHit, SearchProvider
from s2l.collectors.searching.registry import Access, MakeProvider
from s2l.collectors.well_formed import readable
from s2l.workloads.arrival import ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.provenance import ALLOWED, LICENCE, NOT_ASKED, ROBOTS
from s2l.workloads.query import Query


class CrawlCollector:
    """Retrieves as a web search agent does.

    The ``search`` arrival has the provider's name and the hits in its ``meta``. Each page is one
    ``append``, failed or not, with ``url`` and ``rank`` (0 is the best hit) in its ``meta``, and
    durations in microseconds: ``first_byte_us`` and ``fetch_us`` from the start to the headers
    and to the end of the body (or to where a browser was done with it), ``extract_us`` from there
    to the text, the wait for a free worker included. Part of ``first_byte_us`` are ``wait_us``
    (for a turn at the site, and between attempts), ``dns_us`` and ``connect_us``.
    """

    def __init__(
        self, search: SearchProvider, reader: PageReader, *, hits: int = 7, robots: str = ALLOWED
    ) -> None:
        self._search = search
        self._reader = reader
        self._hits = hits
        self._robots = robots

    async def retrieve(self, query: Query, record: Recorder) -> None:
        """Search and fetch for one query."""
        hits = await self._find(query, record)
        async with asyncio.TaskGroup() as pages:
            for rank, hit in enumerate(hits):
                pages.create_task(self._retrieve_page(hit, rank, record))

    async def _find(self, query: Query, record: Recorder) -> list[SearchHit]:
        start_us = record.now_us()
        meta: dict[str, Any] = {"provider": self._search.name}
        try:
            hits = await self._search.search(query, self._hits)
        except Failure as failed:
            record.arrived(
                ArrivalKind.SEARCH,
                start_us=start_us,
                status=failed.status,
                detail=failed.detail,
                meta=meta,
            )
            return []
        meta["hits"] = [asdict(hit) for hit in hits]
        record.arrived(ArrivalKind.SEARCH, start_us=start_us, meta=meta)
        return hits

    async def _retrieve_page(self, hit: SearchHit, rank: int, record: Recorder) -> None:
        start_us = record.now_us()
        meta: dict[str, Any] = {"url": hit.url, "rank": rank}
        documents: tuple[Document, ...] = ()
        status: dict[str, str] = {}
        try:
            read = await self._reader.read(hit.url, start_us, record.now_us)
            documents = (_document(read, hit, self._robots),)
            meta |= {**read.page.meta(start_us), **read.found.meta}
            meta["extract_us"] = record.now_us() - read.page.body_us
        except Failure as failed:
            status = {"status": failed.status, "detail": failed.detail}
            meta |= failed.meta
        record.arrived(
            ArrivalKind.APPEND, start_us=start_us, documents=documents, meta=meta, **status
        )


def _document(read: ReadPage, hit: SearchHit, robots: str) -> Document:
    licence = {LICENCE: read.found.licence} if read.found.licence else {}
    return Document.of_text(
        url=read.page.url,
        title=read.found.title or readable(hit.title),
        text=read.found.text,
        mime=read.page.mime,
        fetched_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        meta={ROBOTS: robots, **licence},
    )


@dataclass(frozen=True, slots=True)
class Crawl:
    """A crawl that is ready to begin. ``waiting`` says how many requests wait for which site."""

    collector: CrawlCollector
    waiting: Callable[[], Mapping[str, int]]


@asynccontextmanager
async def open_crawl(
    search: MakeProvider, settings: CrawlSettings | None = None, *, hits: int = 7
) -> AsyncIterator[Crawl]:
    """Start all that a crawl needs: connections, worker processes, perhaps a browser.

    Raises:
        ExtractorError: the worker processes do not start.
        BrowserUnavailable: a browser is asked for, and there is none.
    """
    settings = settings or CrawlSettings()
    async with (
        PageFetching(settings) as fetching,
        ApiClient(user_agent=settings.manners.user_agent) as client,
    ):
        provider = search(Access(fetching.pages, client))
        robots = ALLOWED if settings.manners.obey_robots else NOT_ASKED
        collector = CrawlCollector(provider, fetching.reader, hits=hits, robots=robots)
        yield Crawl(collector, fetching.throttle.waiting)
