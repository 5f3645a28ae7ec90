"""The entry point that vLLM loads when ``VLLM_PLUGINS`` names ``s2l``.

An API key is asked for by vLLM's own middleware, before the socket is accepted (HTTP 401). What
one client may take is bounded by ``Limits``, whose variables are read when the server starts.
"""

import asyncio
import os
from argparse import Namespace
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from s2l.serving_adapter.realtime.connection import Connection
from s2l.serving_adapter.realtime.limits import Ending, Limits, OpenSessions, key_of
from s2l.serving_adapter.vllm_plugin.engine import VllmEngine
from s2l.serving_adapter.vllm_plugin.prefill import admission_of

if TYPE_CHECKING:
    from fastapi import FastAPI

ROUTE: Final = "/v1/realtime"
MAX_REASON_BYTES: Final = 123
"""What a WebSocket close frame has room for."""
CLOSE_TIMEOUT_S: Final = 1.0


class RealtimePlugin:
    """Adds the text part of the OpenAI Realtime API to the ordinary vLLM server."""

    name = "s2l"
    required_tasks = ("generate",)

    def attach_router(self, app: "FastAPI") -> None:
        """Add the WebSocket route."""
        app.add_api_websocket_route(ROUTE, serve)

    async def init_state(self, engine_client: Any, state: Any, args: Namespace) -> None:
        """Wrap the engine that this server runs. Called once, before requests are served.

        Raises:
            ValueError: a variable of a limit or of the prefill mode is wrong.
        """
        engine = VllmEngine(engine_client, served_name=state.openai_serving_models.model_name())
        state.s2l_limits = Limits.from_environment()
        state.s2l_sessions = OpenSessions(state.s2l_limits.max_sessions_per_key)
        state.s2l_asks_for_key = _asks_for_key(args)
        state.s2l_engine = engine
        state.s2l_admission = admission_of(engine)


async def serve(websocket: WebSocket) -> None:
    """One Realtime session, if its key may have one more."""
    state = websocket.app.state
    sessions: OpenSessions = state.s2l_sessions
    address = websocket.client.host if websocket.client else ""
    authorization = websocket.headers.get("authorization", "")
    key = key_of(authorization if state.s2l_asks_for_key else None, address)
    if not sessions.enter(key):
        await websocket.send_denial_response(_too_many(state.s2l_limits))
        return
    try:
        await websocket.accept()
        socket = _StarletteSocket(websocket)
        connection = Connection(socket, state.s2l_engine, state.s2l_admission, state.s2l_limits)
        await socket.close(await connection.serve())
    finally:
        sessions.leave(key)


def _asks_for_key(args: Namespace) -> bool:
    """Whether vLLM lets nobody in without a key, by its own rule: the option, then the variable."""
    return any(args.api_key or [os.environ.get("VLLM_API_KEY")])


def _too_many(limits: Limits) -> JSONResponse:
    message = f"{limits.max_sessions_per_key} sessions are open with this key; close one first"
    error = {
        "type": "rate_limit_error",
        "code": "rate_limit_exceeded",
        "message": f"{message} (max_sessions_per_key)",
        "param": None,
    }
    return JSONResponse({"error": error}, status_code=429, headers={"Retry-After": "1"})


class _StarletteSocket:
    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket

    async def receive(self) -> str | bytes | None:
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            return None
        text: str | None = message.get("text")
        if text is not None:
            return text
        return bytes(message.get("bytes") or b"")

    async def send(self, frame: str) -> None:
        if self._websocket.application_state is not WebSocketState.CONNECTED:
            return
        try:
            await self._websocket.send_text(frame)
        except (WebSocketDisconnect, RuntimeError):
            return  # gone in mid-send: the receiving side sees it and ends the session

    async def close(self, ending: Ending) -> None:
        """Close it as the session says, if the client has not. One that does not read does not
        take the close frame either; the server then drops the connection."""
        if self._websocket.client_state is not WebSocketState.CONNECTED:
            return
        reason = ending.reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._websocket.close(ending.code, reason)
        except (WebSocketDisconnect, RuntimeError, TimeoutError):
            return  # gone just now, or stuck
