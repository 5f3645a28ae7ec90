"""Fetches one address over HTTP, within limits; each way to fail has its code."""

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Protocol, Self

import aiohttp

from s2l.collectors import failure
from s2l.collectors.failure import Failure

PAGE_MIMES: Final = frozenset({"text/html", "application/xhtml+xml", "text/plain"})
_USER_AGENT: Final = "s2l-crawl"
_MOST_WORDS: Final = 200


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """``max_bytes`` counts the body after decompression; ``total_s`` covers redirects too."""

    total_s: float = 60.0
    connect_s: float = 10.0
    max_bytes: int = 10_000_000
    max_redirects: int = 5
    max_connections: int = 256


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer: ``url`` is where redirects led, ``charset`` what its header says (or None).

    ``first_byte_us`` and ``body_us`` are readings of the caller's clock: the headers were here,
    the whole body was here.
    """

    url: str
    mime: str
    charset: str | None
    body: bytes
    first_byte_us: int
    body_us: int


class PageFetcher(Protocol):
    """Fetches pages; a polite or a cached one wraps another."""

    async def fetch(
        self, url: str, now_us: Callable[[], int], mimes: Collection[str] = PAGE_MIMES
    ) -> Fetched:
        """Fetch ``url`` if its type is one of ``mimes``.

        Raises:
            Failure: there is no such answer.
        """
        ...


class Fetcher:
    """A ``PageFetcher`` over a pool of HTTP connections: an async context manager."""

    def __init__(self, limits: FetchLimits | None = None) -> None:
        self._limits = limits or FetchLimits()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        limits = self._limits
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=limits.max_connections),
            timeout=aiohttp.ClientTimeout(total=limits.total_s, sock_connect=limits.connect_s),
            headers={"User-Agent": _USER_AGENT},
            cookie_jar=aiohttp.DummyCookieJar(),
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

    async def fetch(
        self, url: str, now_us: Callable[[], int], mimes: Collection[str] = PAGE_MIMES
    ) -> Fetched:
        """Fetch ``url``, see ``PageFetcher``."""
        if not url.lower().startswith(("http://", "https://")):
            raise Failure(failure.BAD_URL, "not an http or https address")
        async with _named_failures(), self._get(url) as response:
            first_byte_us = now_us()
            _check(response, mimes)
            body = await self._read(response)
            mime, charset = response.content_type, response.charset
            return Fetched(str(response.url), mime, charset, body, first_byte_us, now_us())

    @asynccontextmanager
    async def _get(self, url: str) -> AsyncIterator[aiohttp.ClientResponse]:
        if self._session is None:
            raise RuntimeError("enter the Fetcher (async with) before fetching")
        async with self._session.get(url, max_redirects=self._limits.max_redirects) as response:
            yield response

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        most = self._limits.max_bytes
        too_large = Failure(failure.TOO_LARGE, f"more than {most} bytes")
        if (response.content_length or 0) > most:
            raise too_large
        body = bytearray()
        async for piece in response.content.iter_any():
            body += piece
            if len(body) > most:
                raise too_large
        return bytes(body)


def _check(response: aiohttp.ClientResponse, mimes: Collection[str]) -> None:
    if response.status != 200:
        raise Failure(failure.http_status(response.status), response.reason or "")
    if response.content_type not in mimes:
        raise Failure(failure.NOT_TEXT, response.content_type)


@asynccontextmanager
async def _named_failures() -> AsyncIterator[None]:
    """Turn the client's errors into failures with a code."""
    try:
        yield
    except (TimeoutError, aiohttp.ClientError, UnicodeError) as error:
        words = str(error).partition("\n")[0][:_MOST_WORDS]
        raise Failure(_status(error), words or type(error).__name__) from error


def _status(error: Exception) -> str:
    for kinds, status in _STATUSES:
        if isinstance(error, kinds):
            return status
    return failure.BROKEN


# In this order: several of these are subclasses of later ones.
_STATUSES: Final[tuple[tuple[type[Exception], str], ...]] = (
    (TimeoutError, failure.TIMEOUT),
    (aiohttp.ClientConnectorDNSError, failure.DNS),
    (aiohttp.ClientSSLError, failure.TLS),
    (aiohttp.ClientConnectorError, failure.CONNECT),
    (aiohttp.TooManyRedirects, failure.TOO_MANY_REDIRECTS),
    (aiohttp.InvalidURL, failure.BAD_URL),
    (aiohttp.NonHttpUrlClientError, failure.BAD_URL),
    (UnicodeError, failure.BAD_URL),  # a host name that no host can have
    (aiohttp.ClientError, failure.BROKEN),
)
