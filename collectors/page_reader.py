"""Fetches a page and extracts its text, by a browser where that is needed."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from yarl import URL

from s2l.collectors import failure
from s2l.collectors.extraction.extracted import Extracted
from s2l.collectors.extraction.extractor import Extractor
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.address import fetchable
from s2l.collectors.fetching.page import HTML_MIMES, Fetched, NowUs, PageFetcher

_MOST_REFRESHES: Final = 3


class BrowserMode(StrEnum):
    """Which pages a browser opens: those that seem to need it, all HTML, or none."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Renderer(Protocol):
    """Runs a page's programs."""

    async def render(self, page: Fetched, now_us: NowUs) -> Fetched:
        """The page as it is then; its ``body_us`` is the moment when it was.

        Raises:
            Failure: ``browser_failed`` or ``browser_timeout``.
        """
        ...


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page and what was extracted from it."""

    page: Fetched
    found: Extracted


class PageReader:
    """Pages as text. Without a ``renderer`` no page is opened in a browser."""

    def __init__(
        self,
        fetcher: PageFetcher,
        extractor: Extractor,
        *,
        renderer: Renderer | None = None,
        mode: BrowserMode = BrowserMode.NEVER,
    ) -> None:
        self._fetcher = fetcher
        self._extractor = extractor
        self._renderer = renderer
        self._mode = mode if renderer else BrowserMode.NEVER

    async def read(self, url: str, start_us: int, now_us: NowUs) -> ReadPage:
        """Fetch ``url``, go where its ``<meta>`` refresh leads, render it if needed, extract.

        ``start_us`` is when it was asked for; a failure's ``meta`` tells how far it came.

        Raises:
            Failure: there is no such page, or no text in it.
        """
        page = await self._fetcher.fetch(url, now_us)
        for _ in range(_MOST_REFRESHES + 1):
            try:
                read = await self._text(page, now_us)
                if read.found.refresh_url is None:
                    return _with_text(read)
                page = await self._next(page, read.found.refresh_url, now_us)
            except Failure as failed:
                failed.meta = {**page.meta(start_us), **failed.meta}
                raise
        detail = f"more than {_MOST_REFRESHES} by <meta>"
        raise Failure(failure.TOO_MANY_REDIRECTS, detail, meta=page.meta(start_us))

    async def _text(self, page: Fetched, now_us: NowUs) -> ReadPage:
        """What the page says, as it came or as the browser shows it."""
        if self._mode is BrowserMode.ALWAYS and page.mime in HTML_MIMES:
            return await self._rendered(page, now_us)
        found = await self._extractor.read(page)
        if found.needs_script and self._mode is BrowserMode.AUTO:
            return await self._rendered(page, now_us)
        return ReadPage(page, found)

    async def _next(self, page: Fetched, refresh_url: str, now_us: NowUs) -> Fetched:
        """Where a page sends its reader; the way there stays in ``redirects``."""
        target = str(fetchable(refresh_url, URL(page.url)))
        following = await self._fetcher.fetch(target, now_us)
        return following.after(page, (*page.redirects, target))

    async def _rendered(self, page: Fetched, now_us: NowUs) -> ReadPage:
        assert self._renderer is not None
        rendered = await self._renderer.render(page, now_us)
        return ReadPage(rendered, await self._extractor.read(rendered))


def _with_text(read: ReadPage) -> ReadPage:
    if not read.found.text:
        raise Failure(failure.EMPTY, "no text in the page")
    return read
