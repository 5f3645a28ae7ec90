"""What makes shapes, and is chosen by name."""

from collections.abc import Iterator
from typing import Final, Protocol

from s2l.workloads.synth.shape import QueryShape

BLOCK_QUERIES: Final = 1024
"""Queries that are drawn at a time; no more are held."""


class Profile(Protocol):
    """Streams the shapes of ``n`` queries; the same seed and n give the same ones."""

    @property
    def name(self) -> str:
        """What the dataset is said to be like."""

    def shapes(self, n: int, seed: int) -> Iterator[QueryShape]:
        """The shapes, in order."""
