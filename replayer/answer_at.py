"""When the question is asked: with all that was retrieved, or before with a part of it."""

import re
from collections.abc import Iterable
from typing import Final

_POINT: Final = re.compile(r"(\d+(?:\.\d+)?)(%|ms|s)")
_UNIT_US: Final = {"s": 1e6, "ms": 1e3}


def ask_us(point: str | None, due_us: int) -> int:
    """The moment in µs since the query's start: a share of the retrieval's time (``25%``) or a
    time (``2s``, ``500ms``), at most its end. None is its end.

    Raises:
        ValueError: it is not written like that.
    """
    if point is None:
        return due_us
    found = _POINT.fullmatch(point)
    if found is None or (found[2] == "%" and float(found[1]) > 100):
        raise ValueError(f"{point!r} is no moment to answer at; write 25%, 2s or 500ms")
    value, unit = float(found[1]), found[2]
    at_us = value / 100 * due_us if unit == "%" else value * _UNIT_US[unit]
    return min(due_us, round(at_us))


def points(answer_at: Iterable[str]) -> list[str | None]:
    """The moments that were asked for, each once; None stands for the retrieval's end.

    Raises:
        ValueError: one of them is not written as it is to be.
    """
    found: dict[str | None, None] = {}
    for point in answer_at:
        ask_us(point, 0)
        whole = point.endswith("%") and float(point[:-1]) == 100
        found[None if whole else point] = None
    return list(found) or [None]
