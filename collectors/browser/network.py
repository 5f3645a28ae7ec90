"""A page's requests in a browser, answered by our own fetcher: the browser has no network."""

import asyncio
from typing import Final, Protocol

from s2l.collectors.failure import Failure
from s2l.collectors.fetching.page import Fetched, NowUs, PageFetcher

_UNSEEN: Final = frozenset({"image", "media", "font", "texttrack", "manifest", "beacon", "ping"})
"""Kinds of resources that no text comes from; they are not fetched."""


class Request(Protocol):
    """What a page in the browser asks for."""

    @property
    def url(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def resource_type(self) -> str: ...
    def is_navigation_request(self) -> bool: ...


class Route(Protocol):
    """A request that waits for its answer: the part of Playwright's that is needed."""

    @property
    def request(self) -> Request: ...
    async def abort(self, error_code: str | None = None) -> None: ...
    async def fulfill(
        self,
        *,
        status: int | None = None,
        headers: dict[str, str] | None = None,
        body: str | bytes | None = None,
    ) -> None: ...


class PageNetwork:
    """Answers the requests of one page under way.

    The page itself is already here. Everything else goes through ``fetcher`` with its checks of
    addresses, limits and manners; what that refuses, and what is not a plain GET, is aborted.
    """

    def __init__(self, page: Fetched, fetcher: PageFetcher, now_us: NowUs, most: int) -> None:
        self._page = page
        self._fetcher = fetcher
        self._now_us = now_us
        self._left = most
        self._under_way = 0
        self._changed = asyncio.Event()
        self._given = False

    async def answer(self, route: Route) -> None:
        """Answer one request of the browser."""
        self._under_way += 1
        self._changed.set()
        try:
            await self._answer(route)
        finally:
            self._under_way -= 1
            self._changed.set()

    async def quiet(self, for_s: float) -> None:
        """Wait until no request has been under way for ``for_s``."""
        while True:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), for_s if not self._under_way else None)
            except TimeoutError:
                return

    async def _answer(self, route: Route) -> None:
        request = route.request
        # The first request is for the page itself, perhaps with its address spelt otherwise.
        if not self._given and request.is_navigation_request():
            self._given = True
            await _fulfil(route, self._page)
            return
        if request.method != "GET" or request.resource_type in _UNSEEN or self._left < 1:
            await route.abort("blockedbyclient")
            return
        self._left -= 1
        try:
            found = await self._fetcher.fetch(request.url, self._now_us, None)
        except Failure:
            await route.abort("failed")
            return
        await _fulfil(route, found)


async def _fulfil(route: Route, found: Fetched) -> None:
    kind = found.mime if found.charset is None else f"{found.mime}; charset={found.charset}"
    # A request of a page to another site is checked by the browser against this header, which the
    # fetcher does not pass on; without cookies or keys there is nothing that it would guard.
    headers = {"Content-Type": kind, "Access-Control-Allow-Origin": "*"}
    await route.fulfill(status=200, headers=headers, body=found.body)
