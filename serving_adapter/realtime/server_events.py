"""The events that a Realtime server sends, in the API's shapes."""

import uuid
from dataclasses import dataclass
from typing import Any

from s2l.serving_adapter.realtime.conversation import ConversationItem
from s2l.serving_adapter.realtime.engine import EngineInfo
from s2l.serving_adapter.realtime.session_config import (
    MaxOutputTokens,
    RealtimeError,
    SessionConfig,
)

Event = dict[str, Any]


def new_id(kind: str) -> str:
    """A fresh id such as ``item_3f…``."""
    return f"{kind}_{uuid.uuid4().hex[:20]}"


def event(kind: str, **fields: Any) -> Event:
    """One event with an id of its own."""
    return {"type": kind, "event_id": new_id("event"), **fields}


def session_object(
    session_id: str, config: SessionConfig, info: EngineInfo, *, prefill: str, expires_at: int
) -> Event:
    """The session as ``session.created`` and ``session.updated`` show it; ``expires_at`` is in
    seconds since 1970, ``prefill`` the name of the mode."""
    return {
        "type": "realtime",
        "object": "realtime.session",
        "id": session_id,
        "expires_at": expires_at,
        "model": info.model,
        "output_modalities": ["text"],
        "instructions": config.instructions or "",
        "max_output_tokens": config.max_output_tokens or "inf",
        "tools": [],
        "tool_choice": "auto",
        "truncation": "disabled",
        "s2l": {
            "engine": info.engine,
            "engine_version": info.version,
            "prefill": prefill,
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


def item_object(item: ConversationItem) -> Event:
    """A message as the conversation holds it."""
    kind = "output_text" if item.role == "assistant" else "input_text"
    return {
        "id": item.item_id,
        "object": "realtime.item",
        "type": "message",
        "status": item.status,
        "role": item.role,
        "content": [{"type": kind, "text": text} for text in item.texts],
    }


def rate_limits(**limits: tuple[int, int]) -> Event:
    """What a client may still take: limit and what remains of it, by the API's names. It comes
    back as soon as others give it back, so the time until then is not known and told as zero."""
    return event(
        "rate_limits.updated",
        rate_limits=[
            {"name": name, "limit": limit, "remaining": remaining, "reset_seconds": 0.0}
            for name, (limit, remaining) in limits.items()
        ],
    )


@dataclass(frozen=True, slots=True)
class TokenCount:
    """Tokens of one response: all of the prompt, those of it not prefilled again, the answer's,
    and those prefilled and thrown away because context was replaced (None: not asked for).
    ``found`` were in the prefix cache before this session had put anything there, and
    ``discarded`` were generated after intermediate chunks."""

    prompt: int
    cached: int
    output: int
    invalidated: int | None = None
    found: int = 0
    discarded: int = 0

    def usage(self) -> Event:
        """The API's usage object."""
        extra: Event = {}
        if self.invalidated is not None:
            own = {
                "invalidated_tokens": self.invalidated,
                "found_tokens": self.found,
                "discarded_tokens": self.discarded,
            }
            extra = {"s2l": own}
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a response ended, in the API's terms; ``message`` says what the engine failed with."""

    status: str
    reason: str | None = None
    message: str = ""

    @property
    def item_status(self) -> str:
        """The status of the item that the response made."""
        return "completed" if self.status == "completed" else "incomplete"

    def details(self) -> Event | None:
        """The API's ``status_details``."""
        if self.status == "completed":
            return None
        if self.status != "failed":
            return {"type": self.status, "reason": self.reason}
        error = {"type": "server_error", "code": self.reason, "message": self.message}
        return {"type": self.status, "error": error}


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """What a response is told with from its first event to its last. ``conversation_id`` is None
    for a response that is not added to the conversation."""

    response_id: str
    conversation_id: str | None
    max_output_tokens: MaxOutputTokens
    metadata: dict[str, str] | None = None
    previous_item_id: str | None = None


class ResponseEvents:
    """The events of one response, from ``response.created`` to ``response.done``."""

    def __init__(self, head: ResponseHead, item: ConversationItem) -> None:
        self._head = head
        self._item = item
        self._at = {"response_id": head.response_id, "output_index": 0}
        self._in_part = {**self._at, "item_id": item.item_id, "content_index": 0}

    def created(self) -> Event:
        """The first event."""
        return event("response.created", response=self._response("in_progress", [], None, None))

    def opening(self) -> list[Event]:
        """What comes before the first token."""
        item = item_object(self._item)
        part = {"type": "text", "text": ""}
        return [
            event("response.output_item.added", item=item, **self._at),
            *self._in_conversation("conversation.item.added", item),
            event("response.content_part.added", part=part, **self._in_part),
        ]

    def delta(self, text: str) -> Event:
        """More of the answer."""
        return event("response.output_text.delta", delta=text, **self._in_part)

    def closing(self, outcome: Outcome, count: TokenCount) -> list[Event]:
        """What comes after the last token; the item has its text and status by then."""
        text = "".join(self._item.texts)
        part = {"type": "text", "text": text}
        item = item_object(self._item)
        response = self._response(outcome.status, [item], outcome.details(), count.usage())
        return [
            event("response.output_text.done", text=text, **self._in_part),
            event("response.content_part.done", part=part, **self._in_part),
            event("response.output_item.done", item=item, **self._at),
            *self._in_conversation("conversation.item.done", item),
            event("response.done", response=response),
        ]

    def _in_conversation(self, kind: str, item: Event) -> list[Event]:
        if self._head.conversation_id is None:
            return []
        return [event(kind, item=item, previous_item_id=self._head.previous_item_id)]

    def _response(
        self, status: str, output: list[Event], details: Event | None, usage: Event | None
    ) -> Event:
        return {
            "object": "realtime.response",
            "id": self._head.response_id,
            "conversation_id": self._head.conversation_id,
            "status": status,
            "status_details": details,
            "output": output,
            "output_modalities": ["text"],
            "max_output_tokens": self._head.max_output_tokens,
            "usage": usage,
            "metadata": self._head.metadata,
        }
