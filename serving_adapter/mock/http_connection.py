"""One HTTP connection: reads requests, and writes each byte at the moment that it is due."""

import asyncio
import os
import re
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, cast

import httptools

MAX_BODY_BYTES: Final = 64 * 2**20
REALTIME: Final = b"GET /v1/realtime"
_SAFE_ID: Final = re.compile(rb"[A-Za-z0-9_.:-]{1,128}")

Connections = set["HttpConnection"]


class Request:
    """One request, complete. ``arrived_ns`` is when its last byte was read."""

    __slots__ = ("arrived_ns", "body", "chunks", "keep_alive", "method", "path", "request_id")

    def __init__(self) -> None:
        self.method = self.path = ""
        self.request_id: bytes | None = None
        self.chunks: list[bytes] = []
        self.body = b""
        self.keep_alive = True
        self.arrived_ns = 0


class Exchange(Protocol):
    """A request whose answer is under way."""

    def abort(self) -> None:
        """The client is gone."""


class HttpConnection(asyncio.Protocol):
    """Calls ``handle`` for one request at a time; what is pipelined behind it waits.

    The handler sends bytes and says ``done`` when its answer is complete. A request for the
    Realtime socket hands the transport over to the protocol that ``upgrade`` makes.
    """

    def __init__(
        self,
        handle: Callable[["HttpConnection", Request], None],
        upgrade: Callable[[], asyncio.Protocol],
        connections: Connections,
    ) -> None:
        self._handle = handle
        self._upgrade = upgrade
        self._connections = connections
        self._parser = httptools.HttpRequestParser(self)
        self._transport = cast(asyncio.Transport, None)
        self._fd = -1
        self._now_ns = 0
        self._undecided = b""
        self._between_requests = True
        self._request = Request()
        self._body_bytes = 0
        self._current: Request | None = None
        self._queued: deque[Request] = deque()
        self.exchange: Exchange | None = None

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._fd = transport.get_extra_info("socket").fileno()
        self._connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._connections.discard(self)
        self._queued.clear()
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.abort()

    def data_received(self, data: bytes) -> None:
        self._now_ns = time.monotonic_ns()
        if self._between_requests:
            if self._undecided:
                data, self._undecided = self._undecided + data, b""
            if data.startswith(REALTIME) and self._current is None:
                return self._hand_over(data)
            if REALTIME.startswith(data):
                self._undecided = data
                return None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._parser = httptools.HttpRequestParser(self)  # an offer that is not taken up
        except httptools.HttpParserError as error:
            self._refuse(400, f"not HTTP: {error}")
        return None

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._between_requests = False
        self._request = Request()
        self._body_bytes = 0

    def on_url(self, url: bytes) -> None:
        self._request.path += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(name) == 12 and name.lower() == b"x-request-id" and _SAFE_ID.fullmatch(value):
            self._request.request_id = value
        elif len(name) == 6 and name.lower() == b"expect":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > MAX_BODY_BYTES:
            self._refuse(413, f"the body is more than {MAX_BODY_BYTES} bytes")
        else:
            self._request.chunks.append(body)

    def on_message_complete(self) -> None:
        request = self._request
        request.method = self._parser.get_method().decode("latin-1")
        request.body = request.chunks[0] if len(request.chunks) == 1 else b"".join(request.chunks)
        request.keep_alive = self._parser.should_keep_alive()
        request.arrived_ns = self._now_ns
        self._between_requests = True
        if self._current is None:
            self._current = request
            self._handle(self, request)
        else:
            self._queued.append(request)

    # What handlers call.

    def send(self, data: bytes) -> None:
        """Write now, not at the end of the loop's turn as its transports would."""
        transport = self._transport
        if transport.is_closing():
            return
        if transport.get_write_buffer_size():
            transport.write(data)
            return
        try:
            sent = os.write(self._fd, data)
        except BlockingIOError:
            sent = 0
        except OSError:
            transport.abort()
            return
        if sent < len(data):
            transport.write(data[sent:])

    def reply(self, status: int, body: bytes, content_type: str, headers: str = "") -> None:
        """Send one whole answer."""
        self.send(head(status, f"content-length: {len(body)}\r\n{headers}", content_type) + body)
        self.done()

    def done(self) -> None:
        """The answer is complete: on to the next request, or close."""
        self.exchange = None
        current, self._current = self._current, None
        if current is not None and not current.keep_alive:
            self._transport.close()
        elif self._queued:
            self._current = self._queued.popleft()
            asyncio.get_running_loop().call_soon(self._handle_next, self._current)

    def _handle_next(self, request: Request) -> None:
        if not self._transport.is_closing():
            self._handle(self, request)

    def cut(self) -> None:
        """Close in the middle of whatever is going on, which is aborted."""
        self._transport.abort()

    def _refuse(self, status: int, message: str) -> None:
        self.send(head(status, f"content-length: {len(message)}\r\nconnection: close\r\n"))
        self.send(message.encode("latin-1", "replace"))
        self._transport.close()

    def _hand_over(self, data: bytes) -> None:
        self._connections.discard(self)
        protocol = self._upgrade()
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        protocol.data_received(data)


_REASONS: Final[dict[int, str]] = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Content Too Large",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


def head(status: int, headers: str, content_type: str = "text/plain") -> bytes:
    """Status line and headers; ``headers`` are whole lines."""
    reason = _REASONS.get(status, "Error")
    text = f"HTTP/1.1 {status} {reason}\r\ncontent-type: {content_type}\r\n{headers}\r\n"
    return text.encode("latin-1")
