"""Where the documents of a replaced context stand: what comes first decides what can be kept."""

from collections.abc import Callable, Sequence
from typing import Final

Order = Callable[[Sequence[str], Sequence[str]], list[str]]
"""(documents before, documents now with the best first) to the documents in their places."""


def _score(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """The best document first, as the search gave them."""
    return list(now)


def _reverse(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """The best document last, next to the question."""
    return list(reversed(now))


def _stable(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """Documents that were there stay in their order; new ones come after them, best first.

    It keeps the longest prefix that any order can, and gives up that position says rank.
    """
    wanted, there = set(now), set(before)
    return [d for d in before if d in wanted] + [d for d in now if d not in there]


ORDERS: Final[dict[str, Order]] = {"score": _score, "stable": _stable, "reverse": _reverse}
