"""Serves the mock on one port: the real plugin's Realtime code, and OpenAI's HTTP endpoints."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import cast

from aiohttp import web

from s2l.serving_adapter.mock.backend import Backend, HttpOptions
from s2l.serving_adapter.mock.engine import MockEngine
from s2l.serving_adapter.mock.faults import Fault
from s2l.serving_adapter.mock.http_api import HttpApi
from s2l.serving_adapter.mock.http_connection import Connections, HttpConnection
from s2l.serving_adapter.mock.realtime_socket import RealtimeApi
from s2l.serving_adapter.realtime.admission import Admission
from s2l.serving_adapter.realtime.client import MAX_FRAME_BYTES, ROUTE
from s2l.serving_adapter.realtime.limits import Limits

BACKLOG = 4096
_NS = 1_000_000_000


class MockServer:
    """A server on loopback; ``url`` is known once it is started.

    Connections begin as lean HTTP; one that asks for the Realtime socket becomes aiohttp's.
    ``died`` is set when a scheduled fault ended the server.
    """

    def __init__(
        self,
        engine: MockEngine,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        http: HttpOptions | None = None,
        limits: Limits | None = None,
        prefill: str = "auto",
    ) -> None:
        self.engine = engine
        self.admission = Admission(
            engine.info.kv_capacity,
            block_size=engine.info.block_size,
            max_sessions=engine.info.max_sessions,
            prefill=prefill,
            prefix_cache=engine.prefix_cache,
        )
        self._limits = limits
        self.http = http or HttpOptions()
        self.url = ""
        self.died = asyncio.Event()
        self._host, self._port = host, port
        self._connections: Connections = set()

    async def __aenter__(self) -> "MockServer":
        async with AsyncExitStack() as stack:
            stack.callback(self.engine.close)
            self.backend = Backend(self.engine, self.http, self.engine.timer)
            stack.enter_context(self.backend.log)
            self._runner = web.AppRunner(self._app(), shutdown_timeout=1.0)
            await self._runner.setup()
            stack.push_async_callback(self._runner.cleanup)
            self._server = await self._listen()
            stack.callback(self._stop_listening)
            self._stack = stack.pop_all()
        self._schedule_faults(time.monotonic_ns())
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    async def _listen(self) -> asyncio.Server:
        api = HttpApi(self.backend)
        server = await asyncio.get_running_loop().create_server(
            lambda: HttpConnection(api.handle, self._realtime_protocol, self._connections),
            self._host,
            self._port,
            backlog=BACKLOG,
        )
        host, port = server.sockets[0].getsockname()[:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        return server

    def _stop_listening(self) -> None:
        self._server.close()
        for connection in list(self._connections):
            connection.cut()
        assert self._runner.server is not None
        for handler in self._runner.server.connections:
            if handler.transport is not None:
                handler.transport.abort()

    def _realtime_protocol(self) -> asyncio.Protocol:
        assert self._runner.server is not None
        return cast(asyncio.Protocol, self._runner.server())

    def _app(self) -> web.Application:
        realtime = RealtimeApi(self.backend, self.admission, self._limits)
        app = web.Application(client_max_size=MAX_FRAME_BYTES)
        app.add_routes([web.get(ROUTE, realtime.handle)])
        return app

    def _schedule_faults(self, start_ns: int) -> None:
        for fault in self.http.faults.timed():
            at_ns = start_ns + round(fault.at_s * _NS)
            act = self._die if fault.kind == "die" else _pause_of(fault, at_ns)
            self.backend.timer.call_at_ns(at_ns, act)

    def _die(self) -> None:
        """From outside, what the end of the process looks like."""
        self._stop_listening()
        self.died.set()


def _pause_of(fault: Fault, at_ns: int) -> Callable[[], None]:
    """A pause of the whole process: nothing is read, written or begun until it is over."""
    until_ns = at_ns + round(fault.duration_s * _NS)

    def pause() -> None:
        time.sleep(max(0, until_ns - time.monotonic_ns()) / _NS)

    return pause
