"""One HTTP/1.1 connection: requests written as they are, responses handed on byte for byte."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol, cast

import httptools

from s2l.serving_adapter.base import ServingError

Headers = dict[bytes, bytes]
"""Response headers by lower-case name; of a repeated one, the last."""


BodySink = Callable[[bytes], None]
"""Takes the pieces of a body, as they were cut on the way."""


class Reply(Protocol):
    """Who is told of one response. ``on_end`` or ``on_lost`` comes last, once."""

    def on_head(self, status: int, headers: Headers) -> BodySink:
        """The status line and all headers are there; what is returned takes the body."""

    def on_end(self) -> None:
        """The response is complete."""

    def on_lost(self, error: ServingError) -> None:
        """The response cannot be completed."""


_CLOSED: Final = httptools.HttpResponseParser(object())
"""Stands for the parser of a closed connection: a parser and its connection hold each other."""


def nowhere(_: bytes) -> None:
    """Takes a body that nobody waits for."""


class Connection(asyncio.Protocol):
    """A connection that carries one request at a time.

    ``on_free`` is called when it can take the next request, ``on_gone`` once when it is closed.
    """

    __slots__ = (
        "_body",
        "_headers",
        "_on_free",
        "_on_gone",
        "_parser",
        "_reply",
        "_transport",
        "answered",
        "kept",
    )

    def __init__(
        self, on_free: Callable[["Connection"], None], on_gone: Callable[["Connection"], None]
    ) -> None:
        self._on_free, self._on_gone = on_free, on_gone
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._reply: Reply | None = None
        self._headers: Headers = {}
        self._body: BodySink = nowhere
        self.kept = False
        """Whether it lay idle before: the server may have closed it meanwhile."""
        self.answered = False
        """Whether anything came back since the last request."""

    @property
    def usable(self) -> bool:
        """Whether a request can be written now."""
        transport = self._transport
        return transport is not None and self._reply is None and not transport.is_closing()

    def send(self, request: bytes, reply: Reply) -> None:
        """Hand a request to the socket; ``reply`` is told of its response."""
        assert self._transport is not None
        self._reply = reply
        self.answered = False
        self._transport.write(request)

    def abort(self) -> None:
        """Close at once; a reply under way hears nothing more."""
        self._reply, self._body = None, nowhere
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio's call."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class

    def data_received(self, data: bytes) -> None:
        """asyncio's call; what is in ``data`` is handed on before this returns."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            self.abort()
            raise error.__context__ or error from None
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._lose(ServingError("protocol", f"the answer is not HTTP/1.1: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio's call: the connection is closed, by whichever side."""
        if (reply := self._reply) is not None:
            if self._ends_with_connection():
                self._reply, self._body = None, nowhere
                reply.on_end()
            else:
                self._lose(ServingError("disconnected", _cut_off(exc, self.answered)))
        self._transport, self._parser = None, _CLOSED
        self._on_gone(self)

    def on_message_begin(self) -> None:
        """The parser's call. Raises when nothing was asked."""
        self.answered = True
        self._headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        """The parser's call."""
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """The parser's call."""
        status = self._parser.get_status_code()
        if (reply := self._reply) is not None and status >= 200:
            self._body = reply.on_head(status, self._headers)

    def on_body(self, body: bytes) -> None:
        """The parser's call."""
        self._body(body)

    def on_message_complete(self) -> None:
        """The parser's call."""
        if self._parser.get_status_code() < 200:
            return
        reply, self._reply, self._body = self._reply, None, nowhere
        if reply is None or not self._parser.should_keep_alive():
            self.abort()
        else:
            self._on_free(self)
        if reply is not None:
            reply.on_end()

    def _ends_with_connection(self) -> bool:
        """Whether the head came and gave no length: then the body ends where the data does."""
        headers = self._headers
        sized = b"content-length" in headers or b"transfer-encoding" in headers
        return self._body is not nowhere and not sized

    def _lose(self, error: ServingError) -> None:
        reply = self._reply
        self.abort()
        if reply is not None:
            reply.on_lost(error)


def _cut_off(exc: Exception | None, answered: bool) -> str:
    when = "in the middle of the answer" if answered else "before it answered"
    return f"the server closed the connection {when}" + (f" ({exc})" if exc else "")
