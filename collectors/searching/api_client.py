"""Asks the HTTP interfaces of search services, with a key that stays here."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import aiohttp
import msgspec

from s2l.collectors import failure
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.fetcher import USER_AGENT
from s2l.collectors.fetching.http_errors import error_words
from s2l.collectors.fetching.retry_after import retry_after_s
from s2l.collectors.searching.secret import Secret
from s2l.collectors.well_formed import readable

T = TypeVar("T")

_AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})
_TRIES: Final = 4
_LONGEST_PAUSE_S: Final = 60.0
_MOST_BYTES: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One question to a service. ``key_format`` is the value of ``key_header``, ``{}`` the key."""

    url: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    key: Secret | None = None
    key_header: str = "Authorization"
    key_format: str = "Bearer {}"

    def headers(self) -> dict[str, str]:
        """The headers to send; they hold the key, so no frame keeps them."""
        if self.key is None:
            return {}
        return {self.key_header: self.key_format.format(self.key.reveal())}

    def redact(self, text: str) -> str:
        """``text`` without the key."""
        return text if self.key is None else self.key.redact(text)


@dataclass(frozen=True, slots=True)
class _Reply:
    """What came back: a body, or a failure and how long to wait before asking again (or None).

    Its repr shows no key: it is in frames of tracebacks.
    """

    body: bytes = field(default=b"", repr=False)
    status: str = ""
    detail: str = ""
    again_s: float | None = None


class ApiClient:
    """An async context manager. It follows no redirect, which could take a key elsewhere.

    A service that is busy is asked again, up to four times in all, when it says or after a
    growing pause; while one request waits for that, so do the others.
    """

    def __init__(
        self,
        *,
        total_s: float = 30.0,
        user_agent: str = USER_AGENT,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._total_s = total_s
        self._user_agent = user_agent
        self._sleep = sleep
        self._not_before_s = 0.0
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=self._total_s),
            headers={"User-Agent": self._user_agent, "Accept": "application/json"},
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

    async def ask(self, request: ApiRequest, answer: type[T]) -> T:
        """The service's JSON answer.

        Raises:
            Failure: it did not answer, refused, or what it says is no ``answer``.
        """
        reply = await self._reply(request)
        if reply.status:
            raise Failure(reply.status, reply.detail)
        problem = ""
        try:
            return msgspec.json.decode(reply.body, type=answer)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            problem = request.redact(str(error))
        # Raised out here: the first error would bring the answer, which may echo the key.
        raise Failure(failure.BAD_ANSWER, problem)

    async def _reply(self, request: ApiRequest) -> _Reply:
        reply = _Reply()
        for attempt in range(_TRIES):
            pause_s = self._not_before_s - time.monotonic()
            if pause_s > 0:
                await self._sleep(pause_s)
            came = await self._ask_once(request, attempt)
            # Whole, and as it will be shown: what is cut or cleaned afterwards could be half a key.
            reply = replace(came, detail=request.redact(readable(came.detail)))
            del came
            if reply.again_s is None or reply.again_s > _LONGEST_PAUSE_S:
                break
            self._not_before_s = max(self._not_before_s, time.monotonic() + reply.again_s)
        return reply

    async def _ask_once(self, request: ApiRequest, attempt: int) -> _Reply:
        """One try. No exception of the HTTP client leaves: their frames hold the headers."""
        if self._session is None:
            raise RuntimeError("enter the ApiClient (async with) before asking")
        method = "GET" if request.body is None else "POST"
        try:
            async with self._session.request(
                *(method, request.url),
                params=dict(request.params),
                json=request.body,
                headers=request.headers(),
                allow_redirects=False,
            ) as response:
                if response.status != 200:
                    return _refusal(response, attempt)
                return await _read(response)
        except TimeoutError:
            return _Reply(status=failure.TIMEOUT, detail=f"no answer within {self._total_s:g} s")
        except (aiohttp.ClientError, UnicodeError) as error:
            connect = isinstance(error, aiohttp.ClientConnectorError)
            status = failure.CONNECT if connect else failure.BROKEN
            return _Reply(status=status, detail=error_words(error), again_s=2.0**attempt)


async def _read(response: aiohttp.ClientResponse) -> _Reply:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > _MOST_BYTES:
            return _Reply(status=failure.TOO_LARGE, detail=f"more than {_MOST_BYTES} bytes")
    return _Reply(bytes(body))


def _refusal(response: aiohttp.ClientResponse, attempt: int) -> _Reply:
    status, detail = failure.http_status(response.status), response.reason or ""
    if response.status not in _AGAIN:
        return _Reply(status=status, detail=detail)
    asked_s = pause_asked_for_s(response.headers, datetime.now(UTC))
    pause_s = 2.0**attempt if asked_s is None else asked_s
    return _Reply(status=status, detail=detail, again_s=pause_s)


def pause_asked_for_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """How long a service asks to be left alone, in seconds, or None.

    ``Retry-After`` says so, see ``retry_after_s``. Brave lists its windows, a second and a month,
    in ``X-RateLimit-Remaining`` and ``X-RateLimit-Reset`` (seconds): one that is used up must pass.
    """
    if (after_s := retry_after_s(headers.get("Retry-After"), now)) is not None:
        return after_s
    resets = _numbers(headers.get("X-RateLimit-Reset", ""))
    left = _numbers(headers.get("X-RateLimit-Remaining", "")) or [0.0] * len(resets)
    used_up = [reset for reset, more in zip(resets, left, strict=False) if more <= 0]
    return max(used_up, default=None)


def _numbers(text: str) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        return []
    return numbers if all(map(math.isfinite, numbers)) else []
