"""Files over HTTPS: no more bytes than expected, resumed, and only where it is told to go."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar
from urllib.parse import urljoin, urlsplit

import aiohttp

from s2l.workloads.errors import disk_error, one_line
from s2l.workloads.sharing.address import check_url, is_this_machine
from s2l.workloads.sharing.errors import TransferFailed

T = TypeVar("T")

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_TRY_AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})
_MOST_REDIRECTS: Final = 5
_ATTEMPTS: Final = 4
"""How many in a row may end no further than one before."""

_MOST_ATTEMPTS: Final = 100
_CHUNK: Final = 1 << 18
_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=60)
_FAILURES: Final = (aiohttp.ClientError, TimeoutError, ssl.SSLError, ConnectionError)


class _Again(Exception):
    """An attempt that failed, as others may not."""


class Downloader:
    """Fetches files: an async context manager.

    ``token`` goes to the server of ``token_for`` only, not where it redirects to.
    """

    def __init__(
        self,
        *,
        token: str | None = None,
        token_for: str = "",
        first_wait_s: float = 0.5,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._first_wait_s = first_wait_s
        self._sleep = sleep
        self._token = token
        self._token_for = _origin(token_for)

    async def __aenter__(self) -> Self:
        headers = {"User-Agent": "s2l", "Accept-Encoding": "identity"}
        self._session = aiohttp.ClientSession(
            headers=headers, timeout=_TIMEOUT, auto_decompress=False, trust_env=True
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def small(self, url: str, most_bytes: int) -> bytes:
        """The whole answer.

        Raises:
            TransferFailed: there is none, or it is larger than ``most_bytes``.
        """

        async def once() -> bytes:
            async with self._answer(url, {}) as answer:
                data = b""
                async for chunk in answer.content.iter_chunked(_CHUNK):
                    data += chunk
                    if len(data) > most_bytes:
                        raise TransferFailed(f"{url}: larger than {most_bytes:,} bytes")
                return data

        return await self._tried(url, once)

    async def file(self, url: str, file: Path, most_bytes: int, *, same: bool) -> None:
        """Fetch into ``file``, from where it ends if it is there already.

        ``same``: what is at the address never changes, or a hash will tell; otherwise the part
        is used only when the server confirms that it is of the same version.

        Raises:
            TransferFailed: what came is larger than ``most_bytes``, or nothing comes any more;
                the part stays.
        """
        try:
            await self._tried(
                url, lambda: self._continue(url, file, most_bytes, same), lambda: _size(file)
            )
        except OSError as error:
            raise disk_error(file, error, "; what was fetched is kept, try again") from None

    async def _continue(self, url: str, file: Path, most_bytes: int, same: bool) -> None:
        tag = file.with_name(file.name + ".etag")
        have = _size(file)
        known = tag.read_text() if tag.exists() else ""
        headers = {"Range": f"bytes={have}-"} if have and (same or known) else {}
        if headers and not same:
            headers["If-Range"] = known
        if same and have == most_bytes:
            return
        async with self._answer(url, headers) as answer:
            goes_on = answer.status == 206 and _starts_at(answer) == have
            if not goes_on and answer.status != 200:
                file.unlink(missing_ok=True)
                raise _Again(f"answered {answer.status} to a range")
            if not same:
                etag = answer.headers.get("ETag", "")
                tag.write_text(etag if etag.startswith('"') else "")
            await _append(answer, file, have if goes_on else 0, most_bytes, url)
        tag.unlink(missing_ok=True)

    async def _tried(
        self, url: str, once: Callable[[], Awaitable[T]], have: Callable[[], int] = lambda: 0
    ) -> T:
        """Attempts with longer and longer waits between them, which are short again after one
        that came further, by what ``have`` says, than any before."""
        failed, furthest, attempts = 0, have(), 0
        while True:
            try:
                return await once()
            except (_Again, *_FAILURES) as error:
                said = one_line(error) if str(error) else type(error).__name__
            attempts += 1
            failed = 1 if have() > furthest else failed + 1
            furthest = max(furthest, have())
            if failed == _ATTEMPTS or attempts == _MOST_ATTEMPTS:
                raise TransferFailed(f"{url}: {said}; what was transferred is kept, try again")
            await self._sleep(self._first_wait_s * 2 ** (failed - 1))

    @asynccontextmanager
    async def _answer(
        self, url: str, headers: Mapping[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer after redirects, which lead only where an address may lead."""
        at = url
        for _ in range(_MOST_REDIRECTS + 1):
            async with self._session.get(
                at, headers={**headers, **self._credentials(at)}, allow_redirects=False
            ) as answer:
                if answer.status not in _REDIRECTS:
                    _check_status(url, answer.status)
                    yield answer
                    return
                at = _redirected(url, at, answer.headers.get("Location", ""))
        raise TransferFailed(f"{url}: redirects more than {_MOST_REDIRECTS} times")

    def _credentials(self, url: str) -> dict[str, str]:
        if self._token and _origin(url) == self._token_for:
            return {"Authorization": f"Bearer {self._token}"}
        return {}


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _check_status(url: str, status: int) -> None:
    if status in _TRY_AGAIN:
        raise _Again(f"answered {status}")
    if status in (401, 403):
        raise TransferFailed(f"{url}: answered {status}; it needs a token, in HF_TOKEN for the Hub")
    if status == 404:
        raise TransferFailed(f"{url}: answered 404; nothing is there")
    if status >= 400 and status != 416:
        raise TransferFailed(f"{url}: answered {status}")


def _redirected(url: str, at: str, location: str) -> str:
    target = urljoin(at, location)
    try:
        check_url(target)
    except ValueError as error:
        raise TransferFailed(f"{url}: redirects to an address that {error}") from None
    if is_this_machine(urlsplit(target).hostname or "") and not is_this_machine(
        urlsplit(url).hostname or ""
    ):
        raise TransferFailed(f"{url}: redirects to this machine")
    return target


def _starts_at(answer: aiohttp.ClientResponse) -> int:
    unit, _, rest = answer.headers.get("Content-Range", "").partition(" ")
    start = rest.partition("-")[0]
    return int(start) if unit == "bytes" and start.isdecimal() else -1


async def _append(
    answer: aiohttp.ClientResponse, file: Path, have: int, most_bytes: int, url: str
) -> None:
    with file.open("ab" if have else "wb") as out:
        async for chunk in answer.content.iter_chunked(_CHUNK):
            have += len(chunk)
            if have > most_bytes:
                raise TransferFailed(f"{url}: larger than the {most_bytes:,} bytes it may have")
            await asyncio.to_thread(out.write, chunk)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port
