"""The plugin's route behind uvicorn and vLLM's own middleware, with the mock for an engine."""

import asyncio
import contextlib
import json
import socket as sockets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
import uvicorn
from aiohttp import WSMsgType
from fastapi import FastAPI

from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.realtime.admission import Admission
from s2l.serving_adapter.realtime.limits import Limits, OpenSessions

pytestmark = pytest.mark.engine

KEY = "key-1"


@dataclass
class Server:
    url: str
    engine: MockEngine
    admission: Admission
    sessions: OpenSessions

    async def until_free(self) -> None:
        """Wait until no session is left, and nothing of any."""
        async with asyncio.timeout(10):
            while self.sessions.total or self.engine.open_runs or self.admission.waiting:
                await asyncio.sleep(0.005)
        assert self.admission.free_tokens == self.engine.info.kv_capacity


@asynccontextmanager
async def _serving(
    limits: Limits, latencies: Latencies | None = None, *, asks_for_key: bool = True
) -> AsyncIterator[Server]:
    from vllm.entrypoints.serve.middleware.authenticate import AuthenticationMiddleware

    from s2l.serving_adapter.vllm_plugin.plugin import RealtimePlugin

    engine = MockEngine(latencies or Latencies(1e6, 0.001, 0.001), kv_capacity=64_000)
    app = FastAPI()
    RealtimePlugin().attach_router(app)
    if asks_for_key:
        app.add_middleware(AuthenticationMiddleware, tokens=[KEY])
    app.state.s2l_limits, app.state.s2l_engine = limits, engine
    app.state.s2l_asks_for_key = asks_for_key
    app.state.s2l_origins = ("https://trusted.example",)
    app.state.s2l_sessions = OpenSessions(limits.max_sessions_per_key)
    app.state.s2l_admission = Admission(64_000, block_size=16, max_sessions=64)
    config = uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    with sockets.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        serving = asyncio.create_task(server.serve([listener]))
        try:
            url = f"http://127.0.0.1:{port}/v1/realtime"
            yield Server(url, engine, app.state.s2l_admission, app.state.s2l_sessions)
        finally:
            server.should_exit = True
            await serving
            engine.close()


@asynccontextmanager
async def _session(
    server: Server, **options: Any
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    headers = {"Authorization": f"Bearer {KEY}"}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.ws_connect(server.url) as socket,
    ):
        yield socket


async def _close_of(socket: aiohttp.ClientWebSocketResponse) -> tuple[int | None, str, list[Any]]:
    """Code and reason with which the server closes, and the events before."""
    events = []
    while (frame := await asyncio.wait_for(socket.receive(), 10)).type is WSMsgType.TEXT:
        events.append(json.loads(frame.data))
    return frame.data, str(frame.extra), events


@pytest.mark.parametrize("key", [None, "wrong", ""])
async def test_without_the_key_the_socket_is_not_accepted(key: str | None) -> None:
    async with _serving(Limits()) as server, aiohttp.ClientSession() as http:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await http.ws_connect(server.url, headers=headers)
        assert refused.value.status == 401
        assert server.sessions.total == 0


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
async def test_a_page_of_another_server_opens_no_session(origin: str) -> None:
    async with _serving(Limits(), asks_for_key=False) as server, aiohttp.ClientSession() as http:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await http.ws_connect(server.url, origin=origin)
        assert refused.value.status == 403
        own = server.url.removesuffix("/v1/realtime")
        for trusted in ("https://trusted.example", own):
            async with http.ws_connect(server.url, origin=trusted) as socket:
                assert json.loads((await socket.receive()).data)["type"] == "session.created"
        await server.until_free()


async def test_a_page_that_has_the_key_may_come_from_anywhere() -> None:
    async with _serving(Limits()) as server, aiohttp.ClientSession() as http:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with http.ws_connect(server.url, origin="https://a", headers=headers) as socket:
            assert json.loads((await socket.receive()).data)["type"] == "session.created"
        await server.until_free()


async def test_the_model_and_the_subprotocol_are_looked_at_before_the_socket_is_accepted() -> None:
    async with _serving(Limits()) as server:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with aiohttp.ClientSession(headers=headers) as http:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await http.ws_connect(f"{server.url}?model=other")
            assert refused.value.status == 404
            url = f"{server.url}?model=mock"
            async with http.ws_connect(url, protocols=("other", "realtime")) as socket:
                assert socket.protocol == "realtime"
        await server.until_free()


async def test_a_key_with_too_many_sessions_is_refused_before_the_socket_is() -> None:
    async with _serving(Limits(max_sessions_per_key=1)) as server:
        async with _session(server), aiohttp.ClientSession() as http:
            headers = {
                "Authorization": f"Bearer {KEY}",
                "Connection": "Upgrade",
                "Upgrade": "websocket",
                "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
            }
            async with http.get(server.url, headers=headers) as refused:
                assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
                error = (await refused.json())["error"]
            assert error["code"] == "rate_limit_exceeded"
            assert "1 sessions are open with this key" in error["message"]
        await server.until_free()
        async with _session(server) as socket:
            assert json.loads((await socket.receive()).data)["type"] == "session.created"


async def test_an_idle_session_is_closed_with_code_and_reason() -> None:
    async with _serving(Limits(max_idle_s=0.1)) as server, _session(server) as socket:
        code, reason, events = await _close_of(socket)
        assert code == 1008
        assert reason == events[-1]["error"]["message"]
        assert events[-1]["error"]["code"] == "session_expired"
        await server.until_free()


async def test_a_client_that_does_not_read_is_dropped_and_frees_its_blocks() -> None:
    content = [{"type": "input_text", "text": "x" * 100_000}]
    event = {"type": "conversation.item.create", "item": {"role": "user", "content": content}}
    frame = json.dumps(event)
    async with _serving(Limits(max_send_s=0.2)) as server, _session(server) as socket:
        transport = socket._response.connection.transport
        transport.pause_reading()
        sending = asyncio.create_task(_send_many(socket, frame, 400))
        await asyncio.wait_for(_dropped(server), 20)
        sending.cancel()
        await asyncio.wait([sending])
        transport.abort()


async def _send_many(socket: aiohttp.ClientWebSocketResponse, frame: str, count: int) -> None:
    """Each is answered twice: far more than the buffers between client and server hold."""
    with contextlib.suppress(ConnectionError, RuntimeError):
        for _ in range(count):
            await socket.send_str(frame)


async def _dropped(server: Server) -> None:
    while server.sessions.total == 0:
        await asyncio.sleep(0.005)
    await server.until_free()


async def test_frames_that_are_no_text() -> None:
    async with _serving(Limits()) as server:
        async with _session(server) as socket:
            await socket.receive()
            await socket.send_bytes(b"\x00\xff")
            error = json.loads((await socket.receive()).data)["error"]
            assert "binary frames" in error["message"]
            await socket._writer.send_frame(b'{"type": "\xff"}', WSMsgType.TEXT)
            assert (await _close_of(socket))[0] == 1007
        await server.until_free()


async def test_messages_that_are_too_large() -> None:
    async with _serving(Limits(max_message_bytes=2**20)) as server:
        async with _session(server) as socket:
            await socket.receive()
            await socket.send_str('"' + "x" * 2**20 + '"')
            error = json.loads((await socket.receive()).data)["error"]
            assert error["code"] == "message_too_large"
            with contextlib.suppress(ConnectionError):  # closed in the middle of it
                await socket.send_str('"' + "x" * 17 * 2**20 + '"')  # uvicorn takes 16 MiB
            assert (await asyncio.wait_for(socket.receive(), 10)).type is not WSMsgType.TEXT
        await server.until_free()
