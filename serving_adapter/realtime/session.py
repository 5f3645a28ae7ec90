"""One request to a Realtime server: its frames encoded beforehand, then sent and listened to."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from s2l.serving_adapter.base import (
    Finished,
    Prefilled,
    Prompt,
    ServerEvent,
    ServingError,
    TextDelta,
)
from s2l.serving_adapter.realtime.context_items import ContextItems, create_item
from s2l.serving_adapter.realtime.server_frame import (
    Problem,
    ResponseObject,
    ServerFrame,
    decode_frame,
    finished,
)

Connect = Callable[[], AbstractAsyncContextManager[aiohttp.ClientWebSocketResponse]]


class PreparedSession:
    """The frames of one request, encoded."""

    def __init__(self, connect: Connect, prompt: Prompt, *, extended: bool, model: str) -> None:
        self._connect = connect
        self.setup = _frame(_session_update(prompt, extended=extended, model=model))
        items = ContextItems()
        self.chunks = tuple(tuple(map(_frame, items.apply(chunk))) for chunk in prompt.chunks)
        self.last_items = items.last_items
        create = {"max_output_tokens": prompt.max_output_tokens, "output_modalities": ["text"]}
        self.ask = (
            _frame(create_item("question", prompt.question)),
            _frame({"type": "response.create", "response": create}),
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator["RealtimeSession"]:
        """Connect and set the session up."""
        async with self._connect() as socket:
            session = RealtimeSession(socket, self)
            await session.send(self.setup)
            yield session


class RealtimeSession:
    """One request on one WebSocket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, prepared: PreparedSession) -> None:
        self._socket = socket
        self._prepared = prepared
        self._reported = 0
        self._sent = 0

    async def send_chunk(self, index: int) -> None:
        """Send context chunk ``index``."""
        self._sent = index + 1
        for frame in self._prepared.chunks[index]:
            await self.send(frame)

    async def ask(self) -> None:
        """Send the question and ask for the answer."""
        for frame in self._prepared.ask:
            await self.send(frame)

    async def send(self, frame: str) -> None:
        """Send one frame. Raises ServingError when the server is gone."""
        try:
            await self._socket.send_str(frame)
        except (aiohttp.ClientError, OSError) as error:
            raise ServingError("disconnected", f"sending failed: {error}") from None

    async def events(self) -> AsyncIterator[ServerEvent]:
        """What the server says, until the answer is complete."""
        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.TEXT:
                break
            for event in self._read(message.data):
                yield event
                if isinstance(event, Finished):
                    return
        raise ServingError(
            "disconnected", f"closed before the end (code {self._socket.close_code})"
        )

    def _read(self, data: str) -> list[ServerEvent]:
        frame = decode_frame(data)
        if frame.type == "response.output_text.delta" and frame.delta:
            return [TextDelta(frame.delta, frame.s2l.tokens if frame.s2l else None)]
        if frame.type == "s2l.prefilled":
            return self._prefilled(frame)
        if frame.type == "error":
            problem = frame.error or Problem()
            raise ServingError("rejected", f"{problem.code or problem.type}: {problem.message}")
        if frame.type == "response.done":
            return [finished(frame.response or ResponseObject())]
        return []

    def _prefilled(self, frame: ServerFrame) -> list[ServerEvent]:
        """Chunks that were sent, not reported before, and whose last item the server now holds."""
        held = set(frame.item_ids)
        last_items = self._prepared.last_items
        done = [i for i in range(self._reported, self._sent) if last_items[i] in held]
        if done:
            self._reported = done[-1] + 1
        return [Prefilled(index, frame.tokens or 0) for index in done]


def _session_update(prompt: Prompt, *, extended: bool, model: str) -> dict[str, Any]:
    session: dict[str, Any] = {
        "type": "realtime",
        "model": model,
        "instructions": prompt.instructions,
        "output_modalities": ["text"],
    }
    if extended:
        session["s2l"] = {"cache_salt": prompt.cache_salt, "report": True, "temperature": 0.0}
    return {"type": "session.update", "session": session}


def _frame(event: dict[str, Any]) -> str:
    return msgspec.json.encode(event).decode()
