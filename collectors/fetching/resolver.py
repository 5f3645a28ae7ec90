"""Looks up host names, as many at once as are asked for."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from aiohttp.abc import AbstractResolver, ResolveResult

_MOST_AT_ONCE: Final = 128
_NUMERIC: Final = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


class Resolver(AbstractResolver):
    """The system's resolver, in threads of its own.

    The event loop's few threads would make lookups wait for each other, and that wait would be
    recorded as the name server's.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="resolver")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """All addresses of ``host``, numeric.

        Raises:
            OSError: it has none.
        """
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads, _look_up, host, port, family
        )
        return [
            ResolveResult(
                hostname=host,
                host=_with_zone(address),
                port=port,
                family=kind,
                proto=protocol,
                flags=_NUMERIC,
            )
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """Let no lookup that is under way hold up the end."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int, family: int) -> list[tuple[Any, ...]]:
    return list(socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG))


def _with_zone(address: tuple[str | int, ...]) -> str:
    """The numeric address; a link-local one of IPv6 with the network that it is on."""
    zone = (
        f"%{address[3]}" if len(address) == 4 and address[3] and "%" not in str(address[0]) else ""
    )
    return f"{address[0]}{zone}"
