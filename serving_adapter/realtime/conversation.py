"""The items of a conversation in their order, each tokenised once, and the prompt they make."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from s2l.serving_adapter.realtime.prompt_template import Glue
from s2l.serving_adapter.realtime.session_config import RealtimeError

ROOT: Final = "root"
"""The API's name for the place before the first item."""


@dataclass(slots=True, eq=False)
class ConversationItem:
    """One message. ``held`` is whether the engine was reported to hold its tokens where they are
    now, ``was_held`` whether it ever was."""

    item_id: str
    tokens: tuple[int, ...]
    role: str = "user"
    texts: tuple[str, ...] = ()
    status: str = "completed"
    arrived_s: float = 0.0
    held: bool = False
    was_held: bool = False

    @property
    def speaks(self) -> bool:
        """Whether it is part of the prompt: an answer that has no text yet, or got none, is not."""
        return bool(self.tokens) or self.role != "assistant"


class Conversation:
    """Items in order. Its prompt is what the template puts around turns (``glue``), and between
    it the items' tokens; items of one role that follow each other are one turn.
    """

    def __init__(self, before: Sequence[int] = (), items: Sequence[ConversationItem] = ()) -> None:
        self.glue: Glue = (tuple(before),)
        self._items = list(items)
        self._ids = {item.item_id for item in items}

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, item_id: str) -> bool:
        return item_id in self._ids

    def copy(self) -> "Conversation":
        """A conversation of the same items, to be changed while this one stays."""
        other = Conversation((), self._items)
        other.glue = self.glue
        return other

    @property
    def speaks(self) -> bool:
        """Whether any item is part of the prompt."""
        return any(item.speaks for item in self._items)

    @property
    def last_id(self) -> str | None:
        """Id of the last item."""
        return self._items[-1].item_id if self._items else None

    @property
    def roles(self) -> tuple[str, ...]:
        """Roles of the turns; before there is any, that of the one to come."""
        return tuple(role for role, _ in self._turns()) or ("user",)

    @property
    def tokens(self) -> list[int]:
        """Token ids of the prompt up to the end of the last turn, which may still grow."""
        ids = list(self.glue[0])
        for number, (_, turn) in enumerate(self._turns()):
            ids.extend(self.glue[number] if number else ())
            for item in turn:
                ids.extend(item.tokens)
        return ids

    @property
    def prompt(self) -> list[int]:
        """Token ids of the whole prompt, up to where the model answers."""
        return [*self.tokens, *self.glue[-1]] if len(self.glue) > 1 else list(self.glue[0])

    def get(self, item_id: str, error_code: str) -> ConversationItem:
        """The item of that id.

        Raises:
            RealtimeError: there is no such item; with the code given.
        """
        return self._items[self._index(item_id, error_code)]

    def place(self, item_id: str, after: str | None) -> str | None:
        """Where a new item would go: the id of the item before it, None at the beginning.

        Raises:
            RealtimeError: the id exists, or that of the item before it does not.
        """
        if item_id in self._ids:
            message = f"there is an item {item_id!r} already"
            raise RealtimeError("item_create_duplicate_item_id", message, param="item.id")
        if after == ROOT:
            return None
        if after is not None and after not in self._ids:
            message = f"there is no item {after!r} to add one after"
            code = "item_create_invalid_previous_item_id"
            raise RealtimeError(code, message, param="previous_item_id")
        return self.last_id if after is None else after

    def insert(self, item_id: str, tokens: Sequence[int], after: str | None) -> None:
        """Put a user's item after the one named, at the beginning for None."""
        self.add(ConversationItem(item_id, tuple(tokens)), after)

    def add(self, item: ConversationItem, after: str | None) -> None:
        """Put an item after the one named, at the beginning for None."""
        place = 0 if after is None else self._index(after) + 1
        self._items.insert(place, item)
        self._ids.add(item.item_id)
        self._moved_from(place)

    def delete(self, item_id: str) -> None:
        """Take an item out.

        Raises:
            RealtimeError: there is no such item.
        """
        place = self._index(item_id)
        del self._items[place]
        self._ids.remove(item_id)
        self._moved_from(place)

    def follows(self, item_id: str) -> bool:
        """Whether there are items after the one named; of one that is gone, whether any are."""
        return bool(self._items) and (item_id not in self._ids or self.last_id != item_id)

    def newly_held(self, tokens: int) -> list[ConversationItem]:
        """Items that lie within the first ``tokens`` and were not yet, where they are now.

        The last token of a prompt is held back until its end, so one missing token is none.
        """
        end, items = len(self.glue[0]), list[ConversationItem]()
        for number, (_, turn) in enumerate(self._turns()):
            end += len(self.glue[number]) if number else 0
            for item in turn:
                end += len(item.tokens)
                if end > tokens + 1:
                    return items
                if not item.held:
                    item.held = True
                    items.append(item)
        return items

    def _turns(self) -> Iterator[tuple[str, list[ConversationItem]]]:
        speaking = (item for item in self._items if item.speaks)
        for role, items in groupby(speaking, key=lambda item: item.role):
            yield role, list(items)

    def _moved_from(self, place: int) -> None:
        for item in self._items[place:]:
            item.held = False

    def _index(self, item_id: str, error_code: str = "item_delete_invalid_item_id") -> int:
        if item_id in self._ids:
            for place, item in enumerate(self._items):
                if item.item_id == item_id:
                    return place
        raise RealtimeError(error_code, f"there is no item {item_id[:100]!r}", param="item_id")
