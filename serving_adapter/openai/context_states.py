"""The context of one prompt after each of its chunks, encoded once, compared piece by piece."""

from collections.abc import Sequence

import msgspec

from s2l.serving_adapter.base import ContextChunk

Pieces = tuple[bytes, ...]
"""Texts as they stand inside a JSON string; joined, they are the text."""


def escaped(text: str) -> bytes:
    """The text as it stands between the quotes of a JSON string."""
    return msgspec.json.encode(text)[1:-1]


class ContextStates:
    """``states[n]`` is the context once ``n`` chunks have come; ``states[0]`` is empty.

    A document that stands in several states is encoded once and held once.
    """

    __slots__ = ("sizes", "states")

    def __init__(self, chunks: Sequence[ContextChunk]) -> None:
        encoded: dict[str, bytes] = {}
        state: Pieces = ()
        states = [state]
        for chunk in chunks:
            new = []
            for document in chunk.documents:
                if (piece := encoded.get(document.text)) is None:
                    piece = encoded[document.text] = escaped(document.text)
                new.append(piece)
            state = tuple(new) if chunk.replaces else (*state, *new)
            states.append(state)
        self.states = tuple(states)
        self.sizes = tuple(sum(map(len, state)) for state in states)

    def shared(self, one: int, other: int) -> int:
        """Bytes of the longest common prefix of two states.

        Documents are compared as wholes first: the same text cut into other documents counts as
        another text from the first cut that differs.
        """
        total = 0
        for a, b in zip(self.states[one], self.states[other], strict=False):
            if a != b:
                return total + _common(a, b)
            total += len(a)
        return total

    def is_prefix(self, one: int, other: int) -> bool:
        """Whether one state is how another begins."""
        return self.sizes[one] <= self.sizes[other] and self.shared(one, other) == self.sizes[one]


def _common(a: bytes, b: bytes) -> int:
    """Bytes of the longest common beginning, by bisection: it is asked for between measurements,
    and comparing byte by byte would take a hundred times as long."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
