"""Reads the items that clients send: messages of text, and nothing else."""

from typing import Final

from s2l.serving_adapter.realtime.conversation import ConversationItem
from s2l.serving_adapter.realtime.server_events import new_id
from s2l.serving_adapter.realtime.session_config import Item, RealtimeError, not_supported

REFERENCE: Final = "item_reference"

_PARTS: Final = {"user": "input_text", "system": "input_text", "assistant": "output_text"}
"""By role, the one type of content that is text."""


def message_item(item: Item, param: str, *, arrived_s: float) -> ConversationItem:
    """The message that a client sent as ``param``, not tokenised yet.

    Raises:
        RealtimeError: it is another kind of item, or has content that is not text.
    """
    if item.type != "message":
        raise not_supported(f"items of type {item.type[:100]!r}", f"{param}.type")
    if item.role not in _PARTS:
        supported = ", ".join(map(repr, _PARTS))
        message = f"invalid value: {item.role[:100]!r}; supported values are {supported}"
        raise RealtimeError("invalid_value", message, param=f"{param}.role")
    kind = _PARTS[item.role]
    texts = tuple(part.text for part in item.content if part.type == kind and part.text is not None)
    if not texts or len(texts) != len(item.content):
        message = f"content must be {kind} parts with text"
        raise RealtimeError("invalid_value", message, param=f"{param}.content")
    item_id = item.id or new_id("item")
    return ConversationItem(item_id, (), item.role, texts, arrived_s=arrived_s)
