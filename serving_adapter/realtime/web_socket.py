"""A WebSocket client that does no more than a load generator needs, and nothing twice.

Frames are masked when a request is prepared, not while it is timed; what comes in is handed on in
the callback that read it, so that no task stands between the socket and the clock. No extensions,
no compression. RFC 6455.
"""

import asyncio
import base64
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha1
from typing import Final, Protocol
from urllib.parse import urlsplit

from s2l.serving_adapter.base import ServingError

MAX_MESSAGE_BYTES: Final = 64 * 2**20
MAX_HEAD_BYTES: Final = 64 * 2**10
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
_FINAL: Final = 0x80
_MASKED: Final = 0x80
_NO_CODE: Final = 1005


class SocketListener(Protocol):
    """Who is told of one WebSocket. ``on_lost`` is the last call."""

    def on_open(self) -> None:
        """Frames can be written from now on."""

    def on_message(self, data: bytes) -> None:
        """A whole text or binary message."""

    def on_lost(self, error: ServingError) -> None:
        """It could not be opened, or was closed by the other side."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to connect. ``address`` is what the name was resolved to, where that is known."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    address: tuple[str, int] | None = None

    @property
    def secure(self) -> bool:
        """Whether it is TLS."""
        return urlsplit(self.url).scheme in ("https", "wss")

    @property
    def host(self) -> str:
        """The server's name."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """The server's port."""
        return urlsplit(self.url).port or (443 if self.secure else 80)


def text_frame(data: bytes) -> bytes:
    """A whole text message as a client sends it, masked with a fresh key."""
    return _frame(_TEXT, data)


class ClientSocket(asyncio.Protocol):
    """One connection. It begins to connect when it is made, in the background."""

    def __init__(
        self,
        endpoint: Endpoint,
        listener: SocketListener,
        *,
        connect_timeout_s: float,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._listener: SocketListener | None = listener
        self._tls = tls
        self._transport: asyncio.Transport | None = None
        self._key = base64.b64encode(os.urandom(16))
        self._open = False
        self._buffer = bytearray()
        self._need = 0
        self._parts: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        self._timeout = self._loop.call_later(connect_timeout_s, self._on_timeout)
        self._timeout_s = connect_timeout_s
        self._connecting: asyncio.Task[None] | None = self._loop.create_task(self._connect())

    @property
    def peer(self) -> tuple[str, int] | None:
        """The address that it is connected to."""
        name = self._transport.get_extra_info("peername") if self._transport else None
        return (name[0], name[1]) if name else None

    def write(self, frames: bytes) -> None:
        """Send encoded frames; what is written after the end goes nowhere."""
        if self._transport is not None and self._listener is not None:
            self._transport.write(frames)

    def close(self) -> None:
        """Say goodbye and let go; the listener hears nothing more."""
        self._listener = None
        self._timeout.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
        if self._transport is not None:
            if self._open:
                self._transport.write(_frame(_CLOSE, (1000).to_bytes(2, "big")))
            self._transport.close()
            self._transport = None

    async def _connect(self) -> None:
        where = self._endpoint
        host, port = where.address or (where.host, where.port)
        try:
            await self._loop.create_connection(
                lambda: self,
                host,
                port,
                ssl=self._tls,
                server_hostname=where.host if self._tls else None,
            )
        except ConnectionRefusedError as error:
            self._fail("refused", f"cannot connect: {error.strerror or error}")
        except ssl.SSLCertVerificationError as error:
            self._fail("connect", f"cannot connect: {error.verify_message}")
        except OSError as error:
            self._fail("connect", f"cannot connect: {error.strerror or error}")
        finally:
            self._connecting = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there: ask for the upgrade."""
        self._transport = transport  # type: ignore[assignment]
        if self._listener is None:
            transport.close()
            return
        self._transport.write(_handshake(self._endpoint, self._key))  # type: ignore[union-attr]

    def data_received(self, data: bytes) -> None:
        """Bytes came in."""
        if self._open and not self._buffer:
            self._buffer += self._read_frames(data)
            return
        self._buffer += data
        if len(self._buffer) < self._need:
            return
        data, self._buffer = bytes(self._buffer), bytearray()
        self._buffer += self._read_frames(data) if self._open else self._read_head(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection ended."""
        self._transport = None
        if self._open:
            why = (exc.strerror or str(exc)) if isinstance(exc, OSError) else "no close frame"
            self._fail("disconnected", f"closed before the end ({why})")
        else:
            why = str(exc) if exc else "the connection was closed"
            self._fail("protocol", f"breaks off the handshake ({why})")

    def _on_timeout(self) -> None:
        self._fail("connect_timeout", f"no answer within {self._timeout_s:g} s")

    def _fail(self, kind: str, what: str, *, retry_after_s: float | None = None) -> None:
        listener = self._listener
        self.close()
        if listener is not None:
            if kind != "disconnected":
                what = f"{self._endpoint.url}: {what}"
            listener.on_lost(ServingError(kind, what, retry_after_s=retry_after_s))

    def _read_head(self, data: bytes) -> bytes:
        """Read the answer to the handshake; returns what is left over."""
        head, end, rest = data.partition(b"\r\n\r\n")
        if not end and not (data[:5] == b"HTTP/"[: len(data)] and len(data) < MAX_HEAD_BYTES):
            self._fail("protocol", "breaks off the handshake (not HTTP)")
        if not end or self._listener is None:
            return data
        status, headers = _parse_head(head)
        if status != 101:
            self._fail(*_refusal(status), retry_after_s=_seconds(headers.get("retry-after")))
        elif headers.get("sec-websocket-accept") != _accept(self._key):
            self._fail("protocol", "breaks off the handshake (wrong Sec-WebSocket-Accept)")
        else:
            self._open = True
            self._timeout.cancel()
            self._listener.on_open()
        return self._read_frames(rest) if rest and self._open else b""

    def _read_frames(self, data: bytes) -> bytes:
        """Hand on whole messages; returns what is left over."""
        at, size = 0, len(data)
        while size - at >= 2 and self._listener is not None:
            first, length, body = data[at], data[at + 1], at + 2
            if length >= 126:
                if length > 127:
                    self._fail("protocol", "sends masked frames")
                    break
                body += 2 if length == 126 else 8
                if size < body:
                    break
                length = int.from_bytes(data[at + 2 : body], "big")
            end = body + length
            if length > MAX_MESSAGE_BYTES:
                self._fail("protocol", f"sends a message of {length} bytes")
                break
            if end > size:
                self._need = end - at
                return data[at:]
            at = end
            if first == _FINAL | _TEXT:
                self._listener.on_message(data[body:end])
            else:
                self._other_frame(first, data[body:end])
        self._need = 0
        return data[at:]

    def _other_frame(self, first: int, data: bytes) -> None:
        kind = first & 0x0F
        if kind == _PING:
            self.write(_frame(_PONG, data))
        elif kind == _CLOSE:
            code = int.from_bytes(data[:2], "big") if len(data) >= 2 else _NO_CODE
            self._fail("disconnected", f"closed before the end (code {code})")
        elif kind in (_CONTINUATION, _TEXT, _BINARY):
            self._parts.append(data)
            if sum(map(len, self._parts)) > MAX_MESSAGE_BYTES:
                self._fail("protocol", "sends a message without end")
            elif first & _FINAL and self._listener is not None:
                message, self._parts = b"".join(self._parts), []
                self._listener.on_message(message)
        elif kind != _PONG:
            self._fail("protocol", f"sends frames of an unknown kind {kind}")


def _frame(kind: int, data: bytes) -> bytes:
    size = len(data)
    if size < 126:
        head = bytes((_FINAL | kind, _MASKED | size))
    elif size < 65_536:
        head = bytes((_FINAL | kind, _MASKED | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((_FINAL | kind, _MASKED | 127)) + size.to_bytes(8, "big")
    key = os.urandom(4)
    keys = int.from_bytes((key * (size // 4 + 1))[:size], "little")
    return head + key + (int.from_bytes(data, "little") ^ keys).to_bytes(size, "little")


def _handshake(endpoint: Endpoint, key: bytes) -> bytes:
    parts = urlsplit(endpoint.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [
        f"GET {target} HTTP/1.1",
        f"Host: {parts.netloc}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key.decode()}",
        "Sec-WebSocket-Version: 13",
        *(f"{name}: {value}" for name, value in endpoint.headers),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _accept(key: bytes) -> str:
    return base64.b64encode(sha1(key + _GUID, usedforsecurity=False).digest()).decode()


def _parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    """Status (0: not HTTP) and headers with names in lower case."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
    pairs = (line.partition(":") for line in lines)
    return status, {name.strip().lower(): value.strip() for name, _, value in pairs}


def _refusal(status: int) -> tuple[str, str]:
    if status in (401, 403):
        return "rejected", "the API key was not accepted"
    if status == 429:
        return "rate_limited", "answers HTTP 429"
    if status >= 500:
        return "server_error", f"answers HTTP {status}"
    return "protocol", f"answers HTTP {status}"


def _seconds(value: str | None) -> float | None:
    return float(value) if value is not None and value.isdigit() else None


Connect = Callable[[SocketListener], ClientSocket]
"""Begins to connect; the listener is told how it goes."""
