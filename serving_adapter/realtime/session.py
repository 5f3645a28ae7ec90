"""One request to a Realtime server: its frames encoded beforehand, then sent and listened to."""

from typing import Any, Final

import msgspec

from s2l.serving_adapter.base import Listener, Prompt, ServingError
from s2l.serving_adapter.realtime.context_items import ContextItems, create_item
from s2l.serving_adapter.realtime.server_frame import (
    Problem,
    ResponseObject,
    ServerFrame,
    decode_frame,
    finish_reason,
    usage,
)
from s2l.serving_adapter.realtime.web_socket import Connect, text_frame

_QUESTION: Final = -1


class PreparedSession:
    """The frames of one request, encoded; only the one that carries the salt is not."""

    def __init__(self, connect: Connect, prompt: Prompt, *, extended: bool, model: str) -> None:
        self._connect = connect
        self._setup = _session_update(prompt, model=model)
        self._extended = extended
        items = ContextItems()
        self.chunks = tuple(b"".join(map(_frame, items.apply(chunk))) for chunk in prompt.chunks)
        self.last_items = items.last_items
        create = {"max_output_tokens": prompt.max_output_tokens, "output_modalities": ["text"]}
        self.question = b"".join(
            (
                _frame(create_item("question", prompt.question)),
                _frame({"type": "response.create", "response": create}),
            )
        )

    def start(self, listener: Listener, *, salt: str) -> "RealtimeSession":
        """Begin to connect."""
        session = RealtimeSession(self, listener, self._setup_frame(salt))
        session.socket = self._connect(session)
        return session

    def _setup_frame(self, salt: str) -> bytes:
        if not self._extended:
            return _frame(self._setup)
        own = {"cache_salt": salt, "report": True, "temperature": 0.0}
        return _frame({**self._setup, "session": {**self._setup["session"], "s2l": own}})


class RealtimeSession:
    """One request on one WebSocket. It listens to the socket and tells its own listener."""

    def __init__(self, prepared: PreparedSession, listener: Listener, setup: bytes) -> None:
        self._prepared = prepared
        self._listener: Listener | None = listener
        self._setup = setup
        self._open = False
        self._queued: list[int] = []
        self._reported = 0
        self._sent = 0
        self.socket: Any = None

    def send_chunk(self, index: int) -> None:
        """Send context chunk ``index``, or queue it until the connection is there."""
        if self._open:
            self._write(index)
        else:
            self._queued.append(index)

    def ask(self) -> None:
        """Send the question and ask for the answer, or queue it."""
        self.send_chunk(_QUESTION)

    def close(self) -> None:
        """Hang up; the server aborts what still runs."""
        self._listener = None
        if self.socket is not None:
            self.socket.close()

    def on_open(self) -> None:
        """Set the session up and send what was queued."""
        self._open = True
        self.socket.write(self._setup)
        queued, self._queued = self._queued, []
        for index in queued:
            self._write(index)

    def on_message(self, data: bytes) -> None:
        """One event of the server."""
        listener = self._listener
        if listener is None:
            return
        try:
            frame = decode_frame(data)
            if frame.type == "response.output_text.delta":
                if frame.delta:
                    listener.on_text(frame.delta, frame.s2l.tokens if frame.s2l else None)
            elif frame.type == "s2l.prefilled":
                self._on_prefilled(listener, frame)
            elif frame.type == "response.done":
                self._on_done(listener, frame.response or ResponseObject())
            elif frame.type == "error":
                raise _refusal(frame.error or Problem())
        except ServingError as error:
            self.on_lost(error)

    def on_lost(self, error: ServingError) -> None:
        """The connection or the request failed."""
        listener = self._listener
        self.close()
        if listener is not None:
            listener.on_failed(error)

    def _write(self, index: int) -> None:
        if self._listener is None:
            return
        if index == _QUESTION:
            self.socket.write(self._prepared.question)
            self._listener.on_asked()
        else:
            self._sent = index + 1
            self.socket.write(self._prepared.chunks[index])
            self._listener.on_sent(index)

    def _on_done(self, listener: Listener, response: ResponseObject) -> None:
        reason = finish_reason(response)
        self.close()
        listener.on_finished(usage(response), reason)

    def _on_prefilled(self, listener: Listener, frame: ServerFrame) -> None:
        """Chunks that were sent, not reported before, and whose last item the server now holds."""
        held = set(frame.item_ids)
        last_items = self._prepared.last_items
        done = [i for i in range(self._reported, self._sent) if last_items[i] in held]
        if done:
            self._reported = done[-1] + 1
        for index in done:
            listener.on_prefilled(index, frame.tokens or 0)


def _refusal(problem: Problem) -> ServingError:
    kind = "rate_limited" if problem.code == "rate_limit_exceeded" else "rejected"
    return ServingError(kind, f"{problem.code or problem.type}: {problem.message}")


def _session_update(prompt: Prompt, *, model: str) -> dict[str, Any]:
    session: dict[str, Any] = {
        "type": "realtime",
        "model": model,
        "instructions": prompt.instructions,
        "output_modalities": ["text"],
    }
    return {"type": "session.update", "session": session}


def _frame(event: dict[str, Any]) -> bytes:
    return text_frame(msgspec.json.encode(event))
