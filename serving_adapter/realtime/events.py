"""The events that a client of the Realtime API may send, as they stand on the wire.

Names and shapes are those of the OpenAI Realtime API. What the API has no word for stands under a
key of its own, ``s2l``, and is sent only to clients that asked for it.
"""

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from s2l.serving_adapter.realtime.session_config import (
    Item,
    RealtimeError,
    ResponseConfig,
    SessionConfig,
)

EventId = Annotated[str, Meta(max_length=512)]


class _Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    event_id: EventId | None = None


class SessionUpdate(_Event, frozen=True, kw_only=True, tag="session.update"):
    session: SessionConfig


class ItemCreate(_Event, frozen=True, kw_only=True, tag="conversation.item.create"):
    item: Item
    previous_item_id: str | None = None


class ItemDelete(_Event, frozen=True, kw_only=True, tag="conversation.item.delete"):
    item_id: str


class ItemRetrieve(_Event, frozen=True, kw_only=True, tag="conversation.item.retrieve"):
    item_id: str


class ItemTruncate(_Event, frozen=True, kw_only=True, tag="conversation.item.truncate"):
    item_id: str
    content_index: int
    audio_end_ms: int


class ResponseCreate(_Event, frozen=True, kw_only=True, tag="response.create"):
    response: ResponseConfig | None = None


class ResponseCancel(_Event, frozen=True, kw_only=True, tag="response.cancel"):
    response_id: str | None = None


class InputAudioAppend(_Event, frozen=True, kw_only=True, tag="input_audio_buffer.append"):
    audio: str


class InputAudioClear(_Event, frozen=True, kw_only=True, tag="input_audio_buffer.clear"):
    pass


class InputAudioCommit(_Event, frozen=True, kw_only=True, tag="input_audio_buffer.commit"):
    pass


class OutputAudioClear(_Event, frozen=True, kw_only=True, tag="output_audio_buffer.clear"):
    pass


AudioEvent = InputAudioAppend | InputAudioClear | InputAudioCommit | OutputAudioClear
ClientEvent = (
    SessionUpdate
    | ItemCreate
    | ItemDelete
    | ItemRetrieve
    | ItemTruncate
    | ResponseCreate
    | ResponseCancel
    | AudioEvent
)


class _Head(msgspec.Struct, frozen=True):
    """What every event has; read to answer an event that is not understood."""

    type: Any = None
    event_id: EventId | None = None


_decoder = msgspec.json.Decoder(ClientEvent)
_head = msgspec.json.Decoder(_Head)
_TYPES: Final = tuple(str(kind.__struct_config__.tag) for kind in ClientEvent.__args__)

_AT: Final = re.compile(r"(?P<what>.*?)(?: - at (?:`key` in )?`\$\.?(?P<path>[^`]*)`)?", re.DOTALL)
_FIELD: Final = re.compile(
    r"Object (?P<how>contains unknown|missing required) field `(?P<name>.*)`"
)


def decode_client_event(frame: str) -> ClientEvent:
    """Read one frame from a client.

    Raises:
        RealtimeError: it is not JSON, not an event that the API has, or has the wrong shape.
    """
    try:
        return _decoder.decode(frame)
    except msgspec.ValidationError as error:
        raise _misshapen(str(error), frame) from None
    except RecursionError:
        raise RealtimeError("invalid_event", "not a valid event: nested too deeply") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise RealtimeError("invalid_event", f"not a valid event: {error}") from None


def event_id_of(frame: str | bytes) -> str | None:
    """The id that the client gave to an event, as far as it can be read."""
    try:
        return _head.decode(frame).event_id
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _misshapen(problem: str, frame: str) -> RealtimeError:
    """What msgspec says of a frame, in the API's terms: a code and the path of a parameter."""
    match = _AT.fullmatch(problem)
    what, path = (match["what"], match["path"] or "") if match else (problem, "")
    if field := _FIELD.match(what):
        param = f"{path}.{field['name']}".removeprefix(".")
        if field["how"] == "missing required":
            message = f"missing required parameter: {param!r}"
            return RealtimeError("missing_required_parameter", message, param=param)
        return RealtimeError("unknown_parameter", f"unknown parameter: {param!r}", param=param)
    if path == "type":
        supported = ", ".join(map(repr, _TYPES))
        message = f"invalid value: {_type_of(frame)!r}; supported values are {supported}"
        return RealtimeError("invalid_value", message, param="type")
    if not path:
        return RealtimeError("invalid_event", f"not a valid event: {problem}")
    code = "invalid_type" if " got `" in what else "invalid_value"
    return RealtimeError(code, f"{path}: {what}", param=path)


def _type_of(frame: str) -> str:
    try:
        kind = _head.decode(frame).type
    except msgspec.ValidationError:  # the event id is not valid either
        kind = "?"
    return str(kind)[:100]
