"""A question, and when it is asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Query:
    """One question of a trace.

    ``offset_us`` is when it was asked, in microseconds since the trace's start. ``answers`` are
    reference answers, any of which is right; none means that answers are not scored.
    """

    query_id: str
    text: str
    answers: tuple[str, ...] = ()
    offset_us: int = 0
    meta: Mapping[str, Any] = field(default_factory=dict)
