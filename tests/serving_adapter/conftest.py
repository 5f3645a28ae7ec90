"""A Realtime server over the mock engine on a real socket, and a peer that talks to it by hand."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType, web

from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.realtime.admission import Admission
from s2l.serving_adapter.realtime.connection import Connection
from s2l.serving_adapter.realtime.limits import Limits

FAST = Latencies(prefill_tokens_per_s=1e6, overhead_s=0.005, tpot_s=0.001)


class Peer:
    """A client that sends what it is told and hands back every event."""

    def __init__(
        self,
        socket: aiohttp.ClientWebSocketResponse,
        engine: MockEngine,
        admission: Admission,
        connect: Callable[[], Awaitable[aiohttp.ClientWebSocketResponse]],
    ) -> None:
        self.socket = socket
        self.engine = engine
        self.admission = admission
        self._connect = connect

    async def another(self) -> "Peer":
        """One more session with the same server."""
        peer = Peer(await self._connect(), self.engine, self.admission, self._connect)
        assert (await peer.next())["type"] == "session.created"
        return peer

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send_str(json.dumps({"type": kind, **fields}))

    async def item(
        self, text: str, item_id: str | None = None, *, role: str = "user", **fields: Any
    ) -> None:
        item = message(text, role) | ({"id": item_id} if item_id else {})
        await self.send("conversation.item.create", item=item, **fields)

    async def ask(self, **response: Any) -> None:
        await self.send("response.create", response={"max_output_tokens": 1, **response})

    async def next(self) -> dict[str, Any]:
        frame = await asyncio.wait_for(self.socket.receive(), 5)
        assert frame.type is WSMsgType.TEXT, frame
        event: dict[str, Any] = json.loads(frame.data)
        return event

    async def until(self, kind: str) -> list[dict[str, Any]]:
        seen = [await self.next()]
        while seen[-1]["type"] != kind:
            seen.append(await self.next())
        return seen

    async def last(self, kind: str) -> dict[str, Any]:
        return (await self.until(kind))[-1]

    async def done(self) -> dict[str, Any]:
        """The response of the next ``response.done``."""
        response: dict[str, Any] = (await self.last("response.done"))["response"]
        return response

    async def error(self) -> dict[str, Any]:
        problem: dict[str, Any] = (await self.last("error"))["error"]
        return problem

    async def closed(self) -> tuple[int | None, str]:
        """Code and reason with which the server closes the socket, whatever it says before."""
        while (frame := await asyncio.wait_for(self.socket.receive(), 5)).type is WSMsgType.TEXT:
            pass
        assert frame.type is WSMsgType.CLOSE, frame
        return frame.data, str(frame.extra)

    async def until_idle(self) -> None:
        """Wait until the server holds nothing for this or any other session."""
        async with asyncio.timeout(5):
            while self.engine.open_runs or self.admission.free_tokens < self.capacity:
                await asyncio.sleep(0.002)

    @property
    def capacity(self) -> int:
        """KV room of the engine, in whole blocks."""
        info = self.engine.info
        return info.kv_capacity // info.block_size * info.block_size

    def prompts(self) -> list[str]:
        """What the engine was fed by each of its requests that are kept, in their order."""
        decode = self.engine.vocabulary.decode
        return [decode([i for ids in chunks for i in ids]) for chunks in self.engine.runs.values()]


def message(text: str, role: str = "user", item_id: str | None = None) -> dict[str, Any]:
    """An item of one part of text."""
    kind = "output_text" if role == "assistant" else "input_text"
    item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return item | ({"id": item_id} if item_id else {})


class _Frames:
    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def receive(self) -> str | bytes | None:
        frame = await self._socket.receive()
        return frame.data if frame.type in (WSMsgType.TEXT, WSMsgType.BINARY) else None

    async def send(self, frame: str) -> None:
        try:
            await self._socket.send_str(frame)
        except ConnectionError:
            return


@asynccontextmanager
async def _connected(
    engine: MockEngine | None = None, limits: Limits | None = None
) -> AsyncIterator[Peer]:
    engine = engine or MockEngine(FAST)
    info = engine.info
    admission = Admission(
        info.kv_capacity, block_size=info.block_size, max_sessions=info.max_sessions
    )

    async def realtime(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=64 * 2**20, compress=False)
        await socket.prepare(request)
        ending = await Connection(_Frames(socket), engine, admission, limits).serve()
        await socket.close(code=ending.code, message=ending.reason.encode()[:123])
        return socket

    app = web.Application()
    app.add_routes([web.get("/v1/realtime", realtime)])
    runner = web.AppRunner(app, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        async with (
            aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http,
            http.ws_connect("/v1/realtime", max_msg_size=0) as socket,
        ):
            connect = partial(http.ws_connect, "/v1/realtime", max_msg_size=0)
            peer = Peer(socket, engine, admission, connect)
            assert (await peer.next())["type"] == "session.created"
            yield peer
    finally:
        await runner.cleanup()
        engine.close()


Connected = Callable[..., AbstractAsyncContextManager[Peer]]


@pytest.fixture
def connected() -> Connected:
    """Opens a session: ``connected(engine, limits)``, both optional, is a context manager."""
    return _connected


@pytest.fixture
def fast() -> Latencies:
    """Latencies of a mock that takes next to no time."""
    return FAST
