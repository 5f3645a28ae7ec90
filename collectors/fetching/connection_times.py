"""When the parts of connecting happened, as the HTTP client tells."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import aiohttp

from s2l.collectors.fetching.deadline import Deadline
from s2l.collectors.fetching.page import NowUs


@dataclass(slots=True)
class ConnectionTimes:
    """Of one request: how long its own name lookup and connecting took, 0 where reused.

    The client may connect twice, when a connection turns out to be gone; both count.
    """

    now_us: NowUs
    deadline: Deadline
    dns_us: int = 0
    connect_us: int = 0
    _dns_start_us: int = 0
    _connect_start_us: int = 0
    _dns_before_us: int = 0

    def dns_started(self) -> None:
        """A name is being looked up."""
        self._dns_start_us = self.now_us()

    def dns_ended(self) -> None:
        """The name's addresses are known."""
        self.dns_us += self.now_us() - self._dns_start_us

    def connect_started(self) -> None:
        """A connection is being made; name lookup is part of it."""
        self._connect_start_us, self._dns_before_us = self.now_us(), self.dns_us

    def connect_ended(self) -> None:
        """The connection is there, with TLS where asked for."""
        of_dns_us = self.dns_us - self._dns_before_us
        self.connect_us += self.now_us() - self._connect_start_us - of_dns_us
        self.deadline.connected()

    def reused(self) -> None:
        """A connection was there already."""
        self.deadline.connected()


def trace_config() -> aiohttp.TraceConfig:
    """A trace that tells the ``ConnectionTimes`` given as a request's ``trace_request_ctx``."""
    config = aiohttp.TraceConfig()
    config.on_dns_resolvehost_start.append(_teller(ConnectionTimes.dns_started))
    config.on_dns_resolvehost_end.append(_teller(ConnectionTimes.dns_ended))
    config.on_connection_create_start.append(_teller(ConnectionTimes.connect_started))
    config.on_connection_create_end.append(_teller(ConnectionTimes.connect_ended))
    config.on_connection_reuseconn.append(_teller(ConnectionTimes.reused))
    return config


def _teller(tell: Any) -> Any:
    async def told(session: object, context: SimpleNamespace, params: object) -> None:
        tell(context.trace_request_ctx)

    return told
