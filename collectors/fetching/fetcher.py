"""Fetches one address over HTTP, within limits; each way to fail has its code."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Final, Self

import aiohttp
from yarl import URL

from s2l.collectors import failure
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.address import fetchable
from s2l.collectors.fetching.address_check import AddressRule
from s2l.collectors.fetching.body import read_body
from s2l.collectors.fetching.connection_times import ConnectionTimes, trace_config
from s2l.collectors.fetching.content_coding import ACCEPTED
from s2l.collectors.fetching.deadline import Deadline
from s2l.collectors.fetching.gate import Gate, OpenGate
from s2l.collectors.fetching.http_errors import named_failures
from s2l.collectors.fetching.journey import Journey
from s2l.collectors.fetching.limits import FetchLimits
from s2l.collectors.fetching.page import PAGE_MIMES, Fetched, NowUs
from s2l.collectors.fetching.resolver import Resolver
from s2l.collectors.fetching.response_head import checked_mime, validators

USER_AGENT: Final = "s2l-crawl"

_ACCEPT: Final = "text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.8"
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class Fetcher:
    """A ``PageFetcher`` over a pool of HTTP connections: an async context manager.

    Private addresses are refused unless ``allow_private``, which may name their networks (CIDR).
    Every request passes ``gate``.

    Raises:
        ValueError: ``allow_private`` names something else than networks.
    """

    def __init__(
        self,
        limits: FetchLimits | None = None,
        *,
        user_agent: str = USER_AGENT,
        allow_private: bool | Sequence[str] = False,
        gate: Gate | None = None,
    ) -> None:
        self._limits = limits or FetchLimits()
        self._user_agent = user_agent
        self._rule = AddressRule(allow_private)
        self._gate = gate or OpenGate()
        self._resolver = Resolver()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # No limit of connections here: a request that waits for one would seem to be slow.
        connector = aiohttp.TCPConnector(
            limit=0, resolver=self._resolver, socket_factory=self._rule.socket
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None),
            headers={
                "User-Agent": self._user_agent,
                "Accept": _ACCEPT,
                "Accept-Encoding": ACCEPTED,
            },
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            max_line_size=self._limits.max_header_bytes,
            max_field_size=self._limits.max_header_bytes,
            trace_configs=[trace_config()],
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
        await self._resolver.close()

    async def fetch(
        self,
        url: str,
        now_us: NowUs,
        mimes: Collection[str] | None = PAGE_MIMES,
        headers: Mapping[str, str] | None = None,
    ) -> Fetched:
        """Fetch ``url``, see ``PageFetcher``; ``headers`` go to its own origin only."""
        journey = Journey(now_us, mimes, self._limits.total_s)
        start = here = fetchable(url)
        try:
            while True:
                own = headers if here.origin() == start.origin() else None
                found = await self._visit(here, journey, own or {})
                if isinstance(found, Fetched):
                    return found
                if len(journey.redirects) == self._limits.max_redirects:
                    most = f"more than {self._limits.max_redirects}"
                    raise Failure(failure.TOO_MANY_REDIRECTS, most)
                journey.redirects.append(str(found))
                here = found
        except Failure as failed:
            failed.meta = {**failed.meta, **journey.meta()}
            failed.url = str(here)
            raise

    async def _visit(self, url: URL, journey: Journey, headers: Mapping[str, str]) -> Fetched | URL:
        """One request: the page, or where it is to be found."""
        self._rule.check_host(url.host or "")
        asked_us = journey.now_us()
        async with self._gate.turn(url):
            journey.wait_us += journey.now_us() - asked_us
            async with self._response(url, journey, headers) as (response, times):
                if response.status in _REDIRECTS and "Location" in response.headers:
                    return fetchable(response.headers["Location"], url)
                return await self._page(response, journey, times)

    @asynccontextmanager
    async def _response(
        self, url: URL, journey: Journey, headers: Mapping[str, str]
    ) -> AsyncIterator[tuple[aiohttp.ClientResponse, ConnectionTimes]]:
        if self._session is None:
            raise RuntimeError("enter the Fetcher (async with) before fetching")
        async with Deadline(self._limits, journey.left_s) as deadline:
            times = ConnectionTimes(journey.now_us, deadline)
            try:
                with named_failures():
                    async with self._session.get(
                        url, headers=headers, allow_redirects=False, trace_request_ctx=times
                    ) as response:
                        yield response, times
            finally:
                journey.left_s = deadline.left_s()
                journey.dns_us += times.dns_us
                journey.connect_us += times.connect_us

    async def _page(
        self, response: aiohttp.ClientResponse, journey: Journey, times: ConnectionTimes
    ) -> Fetched:
        first_byte_us = journey.now_us()
        mime = checked_mime(response, journey.mimes)
        body = await read_body(response, self._limits, times.deadline)
        body_us = journey.now_us()
        return Fetched(
            *(str(response.url), mime, response.charset, body, first_byte_us, body_us),
            wait_us=journey.wait_us,
            dns_us=journey.dns_us + times.dns_us,
            connect_us=journey.connect_us + times.connect_us,
            redirects=tuple(journey.redirects),
            validators=validators(response),
        )
