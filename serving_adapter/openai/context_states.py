"""The context of one prompt after each of its chunks, encoded once, compared piece by piece."""

from collections.abc import Sequence

import msgspec

from s2l.serving_adapter.base import ContextChunk
from s2l.workloads.context import common_prefix

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
                return total + common_prefix(a, b)
            total += len(a)
        return total

    def is_prefix(self, one: int, other: int) -> bool:
        """Whether one state is how another begins."""
        return self.sizes[one] <= self.sizes[other] and self.shared(one, other) == self.sizes[one]
