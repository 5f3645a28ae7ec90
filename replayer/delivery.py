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

    Streaming goes first: should a cache be shared after all, it is waiting that profits, and what
    waiting finds there is seen, since it prefills nothing before it asks.
    """
    if name == "both":
        return ("stream", "wait")
    if name not in DELIVERIES:
        raise ValueError(f"no delivery {name!r}; choose stream, wait or both")
    return (name,)
