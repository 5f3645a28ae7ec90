"""Turns changes of a context into the events that make the server's conversation follow."""

from difflib import SequenceMatcher
from itertools import count
from typing import Any

from s2l.serving_adapter.base import ContextChunk, ContextDocument


def create_item(item_id: str, text: str, *, after: str | None = None) -> dict[str, Any]:
    """The event that adds a user's text, at the end or after another item (``root``: first)."""
    content = [{"type": "input_text", "text": text}]
    item = {"id": item_id, "type": "message", "role": "user", "content": content}
    event = {"type": "conversation.item.create", "item": item}
    return event if after is None else event | {"previous_item_id": after}


class ContextItems:
    """The documents of one conversation as items, one each, followed change by change.

    A document that stays where it is stays one item: only what is new is sent. ``last_items`` has
    the id of the last item after each change, None where nothing was left.
    """

    def __init__(self) -> None:
        self._held: list[tuple[str, str]] = []  # document id, item id
        self._numbers = count()
        self.last_items: list[str | None] = []

    def apply(self, chunk: ContextChunk) -> list[dict[str, Any]]:
        """The events for one change."""
        events = self._replace(chunk.documents) if chunk.replaces else self._append(chunk.documents)
        self.last_items.append(self._held[-1][1] if self._held else None)
        return events

    def _append(self, documents: tuple[ContextDocument, ...]) -> list[dict[str, Any]]:
        new = [(document, self._new_item(document)) for document in documents]
        self._held += [item for _, item in new]
        return [create_item(item_id, document.text) for document, (_, item_id) in new]

    def _replace(self, documents: tuple[ContextDocument, ...]) -> list[dict[str, Any]]:
        old, new = [doc_id for doc_id, _ in self._held], [d.doc_id for d in documents]
        deletes, creates, held = [], [], list[tuple[str, str]]()
        for what, i, j, m, n in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if what == "equal":
                held += self._held[i:j]
                continue
            deletes += [
                {"type": "conversation.item.delete", "item_id": item} for _, item in self._held[i:j]
            ]
            for document in documents[m:n]:
                after = held[-1][1] if held else "root"
                held.append(item := self._new_item(document))
                creates.append(create_item(item[1], document.text, after=after))
        self._held = held
        return deletes + creates

    def _new_item(self, document: ContextDocument) -> tuple[str, str]:
        return document.doc_id, f"context_{next(self._numbers)}"
