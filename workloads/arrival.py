"""One event of a retrieval: something was looked for, and at this moment it was here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ArrivalKind(StrEnum):
    """What an arrival does to the context of its query."""

    SEARCH = "search"
    """The search step ended: hits are known, no text yet."""
    APPEND = "append"
    """Its documents come after those already there."""
    REPLACE = "replace"
    """Its documents, in order, are the whole context from now on."""
    END = "end"
    """The retrieval is over; every finished query has exactly one, last."""


OK = "ok"
"""The status of an arrival that brought what it was to bring; anything else is a failure code."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One row of a trace.

    ``seq`` counts 0.. within the query, in the order of arrival. ``start_us`` and ``arrival_us``
    are microseconds since the query's start on a monotonic clock: when the work for it began, and
    when its text was ready to send. A failed fetch has a failure code in ``status``, words in
    ``detail`` and no documents.
    """

    query_id: str
    seq: int
    kind: ArrivalKind
    start_us: int
    arrival_us: int
    doc_ids: tuple[str, ...] = ()
    status: str = OK
    detail: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)
