"""The events that a Realtime server sends, in the API's shapes."""

import uuid
from dataclasses import dataclass
from typing import Any

from s2l.serving_adapter.realtime.engine import EngineInfo
from s2l.serving_adapter.realtime.events import RealtimeError, SessionConfig

Event = dict[str, Any]


def new_id(kind: str) -> str:
    """A fresh id such as ``item_3f…``."""
    return f"{kind}_{uuid.uuid4().hex[:20]}"


def event(kind: str, **fields: Any) -> Event:
    """One event with an id of its own."""
    return {"type": kind, "event_id": new_id("event"), **fields}


def session_object(session_id: str, config: SessionConfig, info: EngineInfo) -> Event:
    """The session as ``session.created`` and ``session.updated`` show it."""
    return {
        "type": "realtime",
        "object": "realtime.session",
        "id": session_id,
        "model": info.model,
        "output_modalities": ["text"],
        "instructions": config.instructions or "",
        "max_output_tokens": config.max_output_tokens or "inf",
        "tools": [],
        "tool_choice": "auto",
        "s2l": {
            "engine": info.engine,
            "engine_version": info.version,
            "prefill": "session",
            "max_model_len": info.max_model_len,
            "kv_capacity_tokens": info.kv_capacity,
            "block_size": info.block_size,
            "settings": info.settings,
        },
    }


def error(problem: RealtimeError, event_id: str | None) -> Event:
    """The API's error event; ``event_id`` names the client's event that caused it."""
    return event(
        "error",
        error={
            "type": problem.type,
            "code": problem.code,
            "message": str(problem),
            "param": problem.param,
            "event_id": event_id,
        },
    )


def user_item(item_id: str, text: str) -> Event:
    """A user's message as the conversation holds it."""
    return _message(item_id, "user", [{"type": "input_text", "text": text}], "completed")


def _message(item_id: str, role: str, content: list[Event], status: str) -> Event:
    return {
        "id": item_id,
        "object": "realtime.item",
        "type": "message",
        "status": status,
        "role": role,
        "content": content,
    }


@dataclass(frozen=True, slots=True)
class TokenCount:
    """Tokens of one response: all of the prompt, those of it not prefilled again, the answer's,
    and those prefilled and thrown away because context was replaced (None: not asked for)."""

    prompt: int
    cached: int
    output: int
    invalidated: int | None = None

    def usage(self) -> Event:
        """The API's usage object."""
        extra: Event = {}
        if self.invalidated is not None:
            extra = {"s2l": {"invalidated_tokens": self.invalidated}}
        return extra | {
            "total_tokens": self.prompt + self.output,
            "input_tokens": self.prompt,
            "output_tokens": self.output,
            "input_token_details": {
                "text_tokens": self.prompt,
                "audio_tokens": 0,
                "cached_tokens": self.cached,
                "cached_tokens_details": {"text_tokens": self.cached, "audio_tokens": 0},
            },
            "output_token_details": {"text_tokens": self.output, "audio_tokens": 0},
        }


class ResponseEvents:
    """The events of one response, from ``response.created`` to ``response.done``."""

    def __init__(self, conversation_id: str, max_output_tokens: int) -> None:
        self.response_id = new_id("resp")
        self.item_id = new_id("item")
        self._conversation_id = conversation_id
        self._max_output_tokens = max_output_tokens
        self._at = {"response_id": self.response_id, "output_index": 0}
        self._in_part = {**self._at, "item_id": self.item_id, "content_index": 0}

    def opening(self, previous_item_id: str | None) -> list[Event]:
        """What comes before the first token."""
        item = _message(self.item_id, "assistant", [], "in_progress")
        part = {"type": "output_text", "text": ""}
        return [
            event("response.created", response=self._response("in_progress", [], None, None)),
            event("response.output_item.added", item=item, **self._at),
            event("conversation.item.added", item=item, previous_item_id=previous_item_id),
            event("response.content_part.added", part=part, **self._in_part),
        ]

    def delta(self, text: str) -> Event:
        """More of the answer."""
        return event("response.output_text.delta", delta=text, **self._in_part)

    def closing(
        self, text: str, status: str, reason: str | None, count: TokenCount, message: str = ""
    ) -> list[Event]:
        """What comes after the last token. ``status`` and ``reason`` are the API's."""
        item_status = "completed" if status == "completed" else "incomplete"
        part = {"type": "output_text", "text": text}
        item = _message(self.item_id, "assistant", [part], item_status)
        details: Event | None = None
        if status != "completed":
            details = {"type": status, "reason": reason}
            if message:
                details["error"] = {"type": "server_error", "code": reason, "message": message}
        return [
            event("response.output_text.done", text=text, **self._in_part),
            event("response.content_part.done", part=part, **self._in_part),
            event("response.output_item.done", item=item, **self._at),
            event("conversation.item.done", item=item, previous_item_id=None),
            event("response.done", response=self._response(status, [item], details, count.usage())),
        ]

    def _response(
        self, status: str, output: list[Event], details: Event | None, usage: Event | None
    ) -> Event:
        return {
            "object": "realtime.response",
            "id": self.response_id,
            "conversation_id": self._conversation_id,
            "status": status,
            "status_details": details,
            "output": output,
            "output_modalities": ["text"],
            "max_output_tokens": self._max_output_tokens,
            "usage": usage,
            "metadata": None,
        }
