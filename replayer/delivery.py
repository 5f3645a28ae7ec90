"""When the pieces of a context are sent: as they arrive, or once all of them are there."""

from collections.abc import Callable
from typing import Final

DeliveryRule = Callable[[int, int], int]
"""(arrival of a piece, context due) to when it is sent, all in µs since the query's start."""


def _stream(arrival_us: int, due_us: int) -> int:
    return arrival_us


def _wait(arrival_us: int, due_us: int) -> int:
    return due_us


DELIVERIES: Final[dict[str, DeliveryRule]] = {"stream": _stream, "wait": _wait}


def deliveries_named(name: str) -> tuple[str, ...]:
    """The deliveries that ``--delivery`` names: one of them, or ``both``.

    Waiting goes first: a cache that it warmed would help streaming's rival, never streaming.
    """
    if name == "both":
        return ("wait", "stream")
    if name not in DELIVERIES:
        raise ValueError(f"no delivery {name!r}; choose stream, wait or both")
    return (name,)
