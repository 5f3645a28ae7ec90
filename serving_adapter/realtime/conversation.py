"""The items of a conversation in their order, each tokenised once."""

from collections.abc import Sequence
from dataclasses import dataclass

from s2l.serving_adapter.realtime.events import RealtimeError

ROOT = "root"
"""The API's name for the place before the first item."""


@dataclass(slots=True)
class _Item:
    item_id: str
    tokens: tuple[int, ...]
    reported: bool = False


class Conversation:
    """Items and the prompt that they make: the template's beginning, then all items' tokens."""

    def __init__(self, before: Sequence[int] = ()) -> None:
        self.before = tuple(before)
        self._items: list[_Item] = []

    def __len__(self) -> int:
        return len(self._items)

    @property
    def last_id(self) -> str | None:
        """Id of the last item."""
        return self._items[-1].item_id if self._items else None

    @property
    def tokens(self) -> list[int]:
        """Token ids of the prompt so far."""
        return [*self.before, *(token for item in self._items for token in item.tokens)]

    def check_new(self, item_id: str, after: str | None) -> str | None:
        """Where a new item would go: the id of the item before it, None at the beginning.

        Raises:
            RealtimeError: the id exists, or that of the item before it does not.
        """
        known = {item.item_id for item in self._items}
        if item_id in known:
            raise RealtimeError("duplicate_item", f"item {item_id!r} exists", param="item.id")
        if after == ROOT:
            return None
        if after is not None and after not in known:
            raise _not_found(after, "previous_item_id")
        return self.last_id if after is None else after

    def insert(self, item_id: str, tokens: Sequence[int], after: str | None) -> None:
        """Put an item after the one named, at the beginning for None."""
        place = 0 if after is None else self._index(after) + 1
        self._items.insert(place, _Item(item_id, tuple(tokens)))
        self._moved_from(place)

    def delete(self, item_id: str) -> None:
        """Take an item out.

        Raises:
            RealtimeError: there is no such item.
        """
        place = self._index(item_id)
        del self._items[place]
        self._moved_from(place)

    def report_held(self, tokens: int) -> list[str]:
        """Ids of the items that lie within the first ``tokens`` and were not reported since.

        The last token of a prompt is held back until its end, so one missing token is none.
        """
        end, held = len(self.before), []
        for item in self._items:
            end += len(item.tokens)
            if end > tokens + 1:
                break
            if not item.reported:
                item.reported = True
                held.append(item.item_id)
        return held

    def _moved_from(self, place: int) -> None:
        for item in self._items[place:]:
            item.reported = False

    def _index(self, item_id: str) -> int:
        for place, item in enumerate(self._items):
            if item.item_id == item_id:
                return place
        raise _not_found(item_id, "item_id")


def _not_found(item_id: str, param: str) -> RealtimeError:
    return RealtimeError("item_not_found", f"there is no item {item_id!r}", param=param)
