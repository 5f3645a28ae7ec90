"""The events of the Realtime API that this project speaks, as they stand on the wire.

Names and shapes are those of the OpenAI Realtime API. What the API has no word for stands under a
key of its own, ``s2l``, and is sent only to clients that asked for it.
"""

from typing import Any, Literal

import msgspec


class Extension(msgspec.Struct, frozen=True):
    """What a client may ask for beyond the API, in ``session.update``."""

    cache_salt: str = ""
    """Sessions with different salts share no prefix cache."""
    report: bool = False
    """Send ``s2l.prefilled`` events and token counts with deltas and usage."""
    temperature: float = 0.0


class SessionConfig(msgspec.Struct, frozen=True):
    """The settings of ``session.update`` that text sessions have."""

    type: Literal["realtime"] = "realtime"
    model: str | None = None
    instructions: str | None = None
    output_modalities: list[str] | None = None
    max_output_tokens: int | Literal["inf"] | None = None
    s2l: Extension | None = None


class Content(msgspec.Struct, frozen=True):
    """One part of a message."""

    type: str
    text: str | None = None


class Item(msgspec.Struct, frozen=True):
    """One message of the conversation."""

    type: str = "message"
    role: str = "user"
    content: list[Content] = []
    id: str | None = None


class ResponseConfig(msgspec.Struct, frozen=True):
    """The settings of ``response.create`` that text responses have."""

    conversation: str | None = None
    instructions: str | None = None
    input: list[Any] | None = None
    max_output_tokens: int | Literal["inf"] | None = None
    output_modalities: list[str] | None = None


class SessionUpdate(msgspec.Struct, frozen=True, tag="session.update"):
    session: SessionConfig
    event_id: str | None = None


class ItemCreate(msgspec.Struct, frozen=True, tag="conversation.item.create"):
    item: Item
    previous_item_id: str | None = None
    event_id: str | None = None


class ItemDelete(msgspec.Struct, frozen=True, tag="conversation.item.delete"):
    item_id: str
    event_id: str | None = None


class ResponseCreate(msgspec.Struct, frozen=True, tag="response.create"):
    response: ResponseConfig | None = None
    event_id: str | None = None


class ResponseCancel(msgspec.Struct, frozen=True, tag="response.cancel"):
    response_id: str | None = None
    event_id: str | None = None


ClientEvent = SessionUpdate | ItemCreate | ItemDelete | ResponseCreate | ResponseCancel


class Head(msgspec.Struct, frozen=True):
    """What every event has; read to answer an event that is not understood."""

    type: str = ""
    event_id: str | None = None


class RealtimeError(Exception):
    """An event that cannot be served, in the API's error form."""

    def __init__(self, code: str, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.param = param
        self.type = "invalid_request_error"


_decoder = msgspec.json.Decoder(ClientEvent)
_head = msgspec.json.Decoder(Head)
_SUPPORTED = ", ".join(t.__struct_config__.tag for t in ClientEvent.__args__)


def decode_client_event(frame: str | bytes) -> ClientEvent:
    """Read one frame from a client.

    Raises:
        RealtimeError: it is not JSON, not an event that is supported, or has the wrong shape.
    """
    try:
        return _decoder.decode(frame)
    except (msgspec.DecodeError, UnicodeError) as error:
        kind = event_head(frame).type
        if kind and kind not in _SUPPORTED.split(", "):
            message = f"unknown event type {kind!r}; supported are {_SUPPORTED}"
            raise RealtimeError("unknown_event", message, param="type") from None
        raise RealtimeError("invalid_event", f"not a valid event: {error}") from None


def event_head(frame: str | bytes) -> Head:
    """Type and id of a frame as far as they can be read."""
    try:
        return _head.decode(frame)
    except (msgspec.DecodeError, UnicodeError):
        return Head()
