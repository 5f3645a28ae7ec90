"""Connections to one server, kept and reused, opened without any cap."""

import asyncio
import socket
import ssl
from typing import Final, Protocol
from urllib.parse import SplitResult

from s2l.serving_adapter.base import ServingError
from s2l.serving_adapter.openai.connection import Connection

OPEN_AT_ONCE: Final = 64
"""Fewer than the connections that servers queue before they are accepted (128 and more)."""


class LeaseHolder(Protocol):
    """Who waits for a connection."""

    def on_connection(self, connection: Connection) -> None:
        """It is there and free."""

    def on_no_connection(self, error: ServingError) -> None:
        """It could not be opened."""


class Lease:
    """A connection taken out of the pool, or one on its way there."""

    __slots__ = ("_connection", "_error", "_given_back", "_holder", "_pool")

    def __init__(self, pool: "ConnectionPool", connection: Connection | None) -> None:
        self._pool = pool
        self._connection = connection
        self._error: ServingError | None = None
        self._holder: LeaseHolder | None = None
        self._given_back = False

    @property
    def failed(self) -> bool:
        """Whether there will be no connection."""
        return self._error is not None

    def use(self, holder: LeaseHolder) -> None:
        """Tell the holder, now or once it is decided."""
        if self._error is not None:
            holder.on_no_connection(self._error)
        elif self._connection is None:
            self._holder = holder
        elif self._connection.usable:
            holder.on_connection(self._connection)
        else:  # the server closed it while it was held
            self._pool.lease().use(holder)

    def let_go(self) -> None:
        """The holder is told nothing any more; the lease can be used by another."""
        self._holder = None

    def give_back(self) -> None:
        """The connection is not needed."""
        self._holder, self._given_back = None, True
        if self._connection is not None:
            self._pool.put(self._connection)
        else:
            self._pool.not_needed(self)

    def settle(self, connection: Connection | None, error: ServingError | None) -> None:
        """The connection is there, or will not be."""
        self._connection, self._error = connection, error
        holder, self._holder = self._holder, None
        if connection is not None and self._given_back:
            self._pool.put(connection)
        elif holder is None:
            return
        elif connection is not None and not connection.usable:
            text = "the server closed the connection at once"
            holder.on_no_connection(ServingError("disconnected", text))
        else:
            self.use(holder)


class ConnectionPool:
    """Keeps what can be reused, last in first out; opens the rest, all at once if need be.

    Names are looked up once and the address that answered first is kept, so that connecting
    takes as long for the last request as for the first. Proxies named in the environment are not
    used: what is measured is this server, not a proxy in front of it.
    """

    def __init__(
        self,
        address: SplitResult,
        *,
        reuse: bool,
        connect_timeout_s: float,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._host = address.hostname or ""
        self._tls = (tls or ssl.create_default_context()) if address.scheme == "https" else None
        self._port = address.port or (443 if self._tls else 80)
        self._reuse = reuse
        self._connect_timeout_s = connect_timeout_s
        self._hosts: list[str] = []
        self._idle: dict[Connection, None] = {}
        self._open: set[Connection] = set()
        self._opening: dict[Lease, asyncio.Task[None]] = {}
        self._all_closed = asyncio.Event()

    def lease(self, *, fresh: bool = False) -> Lease:
        """A free connection, or one that is opened from now on; ``fresh``: never a free one."""
        while self._idle and not fresh:
            connection, _ = self._idle.popitem()
            if connection.usable:
                return Lease(self, connection)
        lease = Lease(self, None)
        task = asyncio.get_running_loop().create_task(self._connect(lease))
        self._opening[lease] = task
        return lease

    def put(self, connection: Connection) -> None:
        """A connection is free."""
        if not connection.usable:
            return
        if self._reuse:
            connection.kept = True
            self._idle[connection] = None
        else:
            connection.abort()

    def not_needed(self, lease: Lease) -> None:
        """Nobody waits for this lease: where nothing is reused it need not be opened."""
        if not self._reuse and (task := self._opening.get(lease)) is not None:
            task.cancel()

    async def open_ahead(self, connections: int) -> None:
        """Have so many free where they are reused, or as many as the server takes."""
        missing = connections - len(self._idle) if self._reuse else 0
        for opened in range(0, missing, OPEN_AT_ONCE):
            leases = [self.lease(fresh=True) for _ in range(min(OPEN_AT_ONCE, missing - opened))]
            tasks = [self._opening[lease] for lease in leases]
            for lease in leases:
                lease.give_back()
            await asyncio.gather(*tasks)
            if any(lease.failed for lease in leases):
                return

    async def close(self) -> None:
        """Close everything, and wait until it is closed."""
        for task in (tasks := list(self._opening.values())):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in list(self._open):
            connection.abort()
        self._idle.clear()
        while self._open:
            self._all_closed.clear()
            await self._all_closed.wait()

    async def _connect(self, lease: Lease) -> None:
        try:
            connection, error = await self._opened(), None
        except ServingError as failure:
            connection, error = None, failure
        finally:
            self._opening.pop(lease, None)
        lease.settle(connection, error)

    async def _opened(self) -> Connection:
        where = f"{self._host}:{self._port}"
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                return await self._to_first_that_answers()
        except TimeoutError:
            text = f"{where}: no connection within {self._connect_timeout_s:g} s"
            raise ServingError("connect_timeout", text) from None
        except ConnectionRefusedError:
            raise ServingError("refused", f"{where}: nothing listens there") from None
        except socket.gaierror as error:
            raise ServingError(
                "connect", f"{self._host}: unknown host ({error.strerror})"
            ) from None
        except OSError as error:  # TLS errors are of this kind too
            raise ServingError("connect", f"{where}: {error.strerror or error}") from None

    async def _to_first_that_answers(self) -> Connection:
        loop = asyncio.get_running_loop()
        if not self._hosts:
            found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            self._hosts = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        for host in self._hosts[:-1]:
            try:
                return await self._to(host)
            except OSError:
                continue
        return await self._to(self._hosts[-1])

    async def _to(self, host: str) -> Connection:
        loop = asyncio.get_running_loop()
        name = self._host if self._tls else None
        _, connection = await loop.create_connection(
            lambda: Connection(self.put, self._gone),
            host,
            self._port,
            ssl=self._tls,
            server_hostname=name,
        )
        self._open.add(connection)
        self._hosts = [host]
        return connection

    def _gone(self, connection: Connection) -> None:
        self._idle.pop(connection, None)
        self._open.discard(connection)
        if not self._open:
            self._all_closed.set()
