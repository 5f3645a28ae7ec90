"""The entry point that vLLM loads when ``VLLM_PLUGINS`` names ``s2l``."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from s2l.serving_adapter.realtime.admission import Admission
from s2l.serving_adapter.realtime.connection import Connection
from s2l.serving_adapter.vllm_plugin.engine import VllmEngine

if TYPE_CHECKING:
    from fastapi import FastAPI

ROUTE = "/v1/realtime"


class RealtimePlugin:
    """Adds the text part of the OpenAI Realtime API to the ordinary vLLM server."""

    name = "s2l"
    required_tasks = ("generate",)

    def attach_router(self, app: "FastAPI") -> None:
        """Add the WebSocket route."""
        app.add_api_websocket_route(ROUTE, serve)

    async def init_state(self, engine_client: Any, state: Any, args: Namespace) -> None:
        """Wrap the engine that this server runs. Called once, before requests are served."""
        engine = VllmEngine(engine_client, served_name=state.openai_serving_models.model_name())
        state.s2l_engine = engine
        state.s2l_admission = Admission(
            engine.info.kv_capacity,
            block_size=engine.info.block_size,
            max_sessions=engine.info.max_sessions,
        )


async def serve(websocket: WebSocket) -> None:
    """One Realtime session."""
    state = websocket.app.state
    await websocket.accept()
    await Connection(_StarletteSocket(websocket), state.s2l_engine, state.s2l_admission).serve()


class _StarletteSocket:
    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket

    async def receive(self) -> str | bytes | None:
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            return None
        frame: str | bytes = message.get("text") or message.get("bytes") or b""
        return frame

    async def send(self, frame: str) -> None:
        if self._websocket.application_state is not WebSocketState.CONNECTED:
            return
        try:
            await self._websocket.send_text(frame)
        except (WebSocketDisconnect, RuntimeError):
            return  # gone in mid-send: the receiving side sees it and ends the session
