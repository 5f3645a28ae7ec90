"""Puts together what fetches a crawl's pages: safety, manners, cache, browser, extraction."""

from contextlib import AsyncExitStack
from dataclasses import replace
from types import TracebackType
from typing import Self

from s2l.collectors.browser.chromium import Chromium
from s2l.collectors.crawl_settings import CrawlSettings
from s2l.collectors.extraction.extractor import Extractor
from s2l.collectors.fetching.fetcher import USER_AGENT, Fetcher
from s2l.collectors.fetching.gate import Gate
from s2l.collectors.fetching.limits import FetchLimits
from s2l.collectors.fetching.page import PageFetcher
from s2l.collectors.page_reader import BrowserMode, PageReader, Renderer
from s2l.collectors.politeness.gate import PoliteGate
from s2l.collectors.politeness.page_cache import PageCache
from s2l.collectors.politeness.retrying import Retrying
from s2l.collectors.politeness.robots import MOST_BYTES, Robots
from s2l.collectors.politeness.throttle import Throttle


class PageFetching:
    """Everything that fetches for one crawl: an async context manager.

    ``pages`` fetches with all manners, out of the cache where there is one; ``reader`` gives pages
    as text. ``throttle`` knows which sites are waited for.

    Raises (on entering):
        ExtractorError: the worker processes do not start.
        BrowserUnavailable: a browser is asked for, and there is none.
        OSError: the cache's folder cannot be made.
    """

    pages: PageFetcher
    reader: PageReader

    def __init__(self, settings: CrawlSettings | None = None) -> None:
        self._settings = settings or CrawlSettings()
        manners = self._settings.manners
        self.throttle = Throttle(
            concurrency=manners.concurrency,
            per_site=manners.per_site,
            delay_s=manners.delay_s,
            crawls=manners.crawls,
        )
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opening:
            await self._open(opening)
            self._stack = opening.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    async def _open(self, stack: AsyncExitStack) -> None:
        settings = self._settings
        robots = await self._robots(stack) if settings.manners.obey_robots else None
        self.pages = await self._fetcher(stack, settings.limits, self._gate(robots))
        if settings.cache is not None:
            cache = PageCache(self.pages, settings.cache, fresh_s=settings.fresh_s)
            self.pages = await stack.enter_async_context(cache)
        renderer = await self._renderer(stack, robots)
        extractor = Extractor(
            workers=settings.extract_workers,
            limit_s=settings.extract_s,
            memory_bytes=settings.extract_bytes,
        )
        await stack.enter_async_context(extractor)
        self.reader = PageReader(self.pages, extractor, renderer=renderer, mode=settings.browser)

    def _gate(self, robots: Robots | None, *, paced: bool = True) -> PoliteGate:
        longest_s = self._settings.manners.retry.longest_s
        return PoliteGate(self.throttle, robots, longest_s=longest_s, paced=paced)

    async def _fetcher(self, stack: AsyncExitStack, limits: FetchLimits, gate: Gate) -> Retrying:
        settings = self._settings
        fetcher = Fetcher(
            limits,
            user_agent=settings.manners.user_agent,
            allow_private=settings.allow_private,
            gate=gate,
        )
        await stack.enter_async_context(fetcher)
        return Retrying(fetcher, settings.manners.retry, self.throttle)

    async def _robots(self, stack: AsyncExitStack) -> Robots:
        limits = replace(self._settings.limits, max_bytes=MOST_BYTES, cut_off=True)
        robots = Robots(await self._fetcher(stack, limits, self._gate(None)), USER_AGENT)
        stack.push_async_callback(robots.close)
        return robots

    async def _renderer(self, stack: AsyncExitStack, robots: Robots | None) -> Renderer | None:
        settings = self._settings
        if settings.browser is BrowserMode.NEVER:
            return None
        parts = await self._fetcher(stack, settings.limits, self._gate(robots, paced=False))
        chromium = Chromium(
            parts,
            user_agent=settings.manners.user_agent,
            allow_no_sandbox=settings.allow_no_sandbox,
        )
        return await stack.enter_async_context(chromium)
