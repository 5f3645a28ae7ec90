"""One HTTP request: a connection is waited for, the request written, the response handed on."""

from collections.abc import Callable
from time import monotonic
from typing import Final

from s2l.serving_adapter.base import ServingError
from s2l.serving_adapter.openai.connection import BodySink, Connection, Headers, Reply, nowhere
from s2l.serving_adapter.openai.connection_pool import ConnectionPool, Lease

STALE_S: Final = 0.5
"""A kept connection that ends without an answer within this time may have been closed before the
request reached the server; after it, the server is taken to have seen the request."""


class Exchange:
    """A request on its way. ``on_written`` is called when it is handed to the connected socket.

    A request that was written to a kept connection which the server had just closed is written
    once more, to a new connection. ``on_resent`` is told before: whether the server saw the first
    one cannot be known from here.
    """

    __slots__ = (
        "_connection",
        "_lease",
        "_on_resent",
        "_on_written",
        "_pool",
        "_reply",
        "_request",
        "_sent_s",
    )

    def __init__(
        self,
        pool: ConnectionPool,
        request: bytes,
        reply: Reply,
        on_written: Callable[[], None],
        on_resent: Callable[[ServingError], None],
    ) -> None:
        self._pool = pool
        self._request = request
        self._reply: Reply | None = reply
        self._on_written: Callable[[], None] | None = on_written
        self._on_resent: Callable[[ServingError], None] | None = on_resent
        self._connection: Connection | None = None
        self._lease: Lease | None = None
        self._sent_s = 0.0

    def start(self, lease: Lease) -> None:
        """Write as soon as the connection is there."""
        self._lease = lease
        lease.use(self)

    def cancel(self) -> Lease | None:
        """Stop, whatever the state; what was leased and not used yet comes back."""
        lease, connection = self._lease, self._connection
        self._forget()
        if connection is not None:
            connection.abort()
        if lease is not None:
            lease.let_go()
        return lease

    def detach(self) -> None:
        """Nobody listens any more; the connection is kept if the response still ends well."""
        self._forget()

    def on_connection(self, connection: Connection) -> None:
        """The lease's call."""
        self._lease, self._connection = None, connection
        self._sent_s = monotonic()
        connection.send(self._request, self)
        if self._on_written is not None:
            self._on_written()

    def on_no_connection(self, error: ServingError) -> None:
        """The lease's call."""
        self._end_with(error)

    def on_head(self, status: int, headers: Headers) -> BodySink:
        """The connection's call."""
        return nowhere if self._reply is None else self._reply.on_head(status, headers)

    def on_end(self) -> None:
        """The connection's call."""
        reply = self._reply
        self._forget()
        if reply is not None:
            reply.on_end()

    def on_lost(self, error: ServingError) -> None:
        """The connection's call."""
        connection = self._connection
        if self._on_resent is not None and connection is not None and self._was_stale(connection):
            self._connection = None
            self._on_resent(error)
            self.start(self._pool.lease(fresh=True))
        else:
            self._end_with(error)

    def _was_stale(self, connection: Connection) -> bool:
        at_once = monotonic() - self._sent_s < STALE_S
        return connection.kept and not connection.answered and at_once

    def _end_with(self, error: ServingError) -> None:
        reply = self._reply
        self._forget()
        if reply is not None:
            reply.on_lost(error)

    def _forget(self) -> None:
        """Let go of everything: nothing here may keep a finished request in memory."""
        self._reply = self._connection = self._lease = None
        self._on_written = self._on_resent = None
