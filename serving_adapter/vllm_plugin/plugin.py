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
from s2l.serving_adapter.realtime.handshake import (
    SUBPROTOCOL,
    Refusal,
    foreign_page,
    wrong_model,
)
from s2l.serving_adapter.realtime.limits import Ending, Limits, OpenSessions, key_of
from s2l.serving_adapter.vllm_plugin.engine import engine_of
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
        engine = engine_of(engine_client, state, args)
        state.s2l_limits = Limits.from_environment()
        state.s2l_sessions = OpenSessions(state.s2l_limits.max_sessions_per_key)
        state.s2l_asks_for_key = _asks_for_key(args)
        state.s2l_origins = tuple(args.allowed_origins)
        state.s2l_engine = engine
        state.s2l_admission = admission_of(engine)


async def serve(websocket: WebSocket) -> None:
    """One Realtime session, if the client may have one, and its key one more."""
    state = websocket.app.state
    sessions: OpenSessions = state.s2l_sessions
    if (refusal := _refusal(websocket)) is not None:
        await websocket.send_denial_response(_denial(refusal))
        return
    key = _key(websocket)
    if not sessions.enter(key):
        denial = _denial(_too_many(state.s2l_limits), {"Retry-After": "1"})
        await websocket.send_denial_response(denial)
        return
    try:
        await websocket.accept(_subprotocol(websocket))
        socket = _StarletteSocket(websocket)
        connection = Connection(socket, state.s2l_engine, state.s2l_admission, state.s2l_limits)
        await socket.close(await connection.serve())
    finally:
        sessions.leave(key)


def _asks_for_key(args: Namespace) -> bool:
    """Whether vLLM lets nobody in without a key, by its own rule: the option, then the variable."""
    return any(args.api_key or [os.environ.get("VLLM_API_KEY")])


def _refusal(websocket: WebSocket) -> Refusal | None:
    state, headers = websocket.app.state, websocket.headers
    refusal = None
    if not state.s2l_asks_for_key:
        origin, host = headers.get("origin"), headers.get("host", "")
        refusal = foreign_page(origin, host, state.s2l_origins)
    return refusal or wrong_model(websocket.query_params.get("model"), state.s2l_engine.info)


def _key(websocket: WebSocket) -> str:
    """Whose session it is."""
    address = websocket.client.host if websocket.client else ""
    asks_for_key = websocket.app.state.s2l_asks_for_key
    return key_of(websocket.headers.get("authorization", "") if asks_for_key else None, address)


def _subprotocol(websocket: WebSocket) -> str | None:
    return SUBPROTOCOL if SUBPROTOCOL in websocket.scope.get("subprotocols", ()) else None


def _too_many(limits: Limits) -> Refusal:
    message = f"{limits.max_sessions_per_key} sessions are open with this key; close one first"
    message += " (max_sessions_per_key)"
    return Refusal(429, "rate_limit_exceeded", message, kind="rate_limit_error")


def _denial(refusal: Refusal, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(refusal.body(), status_code=refusal.status, headers=headers)


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
