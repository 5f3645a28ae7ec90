"""One row per query: both deliveries' times and answers beside each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from s2l.reports.answers import References
from s2l.reports.metrics import Floats, ttft_s
from s2l.reports.pairs import align
from s2l.reports.percentiles import Distribution
from s2l.reports.quality import contains_answer, exact_match
from s2l.reports.thinning import thinned
from s2l.reports.units import Unit, times

ROW_LIMIT: Final = 200
"""Rows of the table, of which at most so many are without a gain:"""
WITHOUT_GAIN_LIMIT: Final = 50
TEXT_LIMIT: Final = 600


@dataclass(frozen=True, slots=True)
class QuerySide:
    """One delivery of a query, as text. ``failure`` is empty where it succeeded; a score is None
    where there is nothing to compare with."""

    delivery: str
    ttft: str
    ttft_s: float | None
    answer: str
    failure: str
    exact: bool | None
    contains: bool | None


@dataclass(frozen=True, slots=True)
class QueryRow:
    """A query, its references and both of its deliveries (those that the run has)."""

    query_id: str
    text: str
    references: tuple[str, ...]
    sides: tuple[QuerySide, ...]
    gain: str
    gain_value: float | None


@dataclass(frozen=True, slots=True)
class QueryTable:
    """The rows shown, the unit of their times, and how many queries there are in all."""

    rows: tuple[QueryRow, ...]
    unit: str
    total: int


def query_table(
    requests: pa.Table, texts: Mapping[str, str], references: References, deliveries: list[str]
) -> QueryTable:
    """Rows in the order of the replay; of a large run, a thinned choice that keeps the extremes.

    Args:
        requests: all requests of the run.
        texts: of the queries, by ``query_id``.
        references: answers by ``query_id``.
        deliveries: that the run has, in the order in which to show them.
    """
    aligned = align(requests)
    waits = ttft_s(requests)
    waits[np.asarray(requests["error_type"].is_valid())] = np.nan
    gains = _gains(aligned, waits)
    kept = _kept(gains)
    shown = aligned.take(pa.array(kept))
    found = Distribution.of(waits)
    unit = Unit.fitting([found.min, found.max])
    rows = [
        _row(positions, requests, waits, float(gains[at]), unit, texts, references, deliveries)
        for at, positions in zip(kept.tolist(), shown.to_pylist(), strict=True)
    ]
    return QueryTable(tuple(rows), unit.name, aligned.num_rows)


def _gains(aligned: pa.Table, waits: Floats) -> Floats:
    """Gain of each aligned query; NaN without both times."""
    padded = np.r_[waits, np.nan]
    sides = [aligned[name].fill_null(waits.size).to_numpy() for name in ("wait", "stream")]
    wait, stream = (padded[side] for side in sides)
    found = np.full(wait.size, np.nan)
    np.divide(wait, stream, out=found, where=(wait > 0) & (stream > 0))
    return found


def _kept(gains: Floats) -> Any:
    """Row numbers to show, in the original order, of those with a gain and of those without."""
    if gains.size <= ROW_LIMIT:
        return np.arange(gains.size)
    order = np.argsort(gains, kind="stable")  # NaN last
    without = np.flatnonzero(np.isnan(gains))
    with_gain = order[: gains.size - without.size]
    chosen = with_gain[thinned(with_gain.size, ROW_LIMIT - WITHOUT_GAIN_LIMIT)]
    return np.sort(np.r_[chosen, without[:WITHOUT_GAIN_LIMIT]])


def _row(
    positions: dict[str, int | None],
    requests: pa.Table,
    waits: Floats,
    gain: float,
    unit: Unit,
    texts: Mapping[str, str],
    references: References,
    deliveries: list[str],
) -> QueryRow:
    sides, query_id = [], ""
    for delivery in deliveries:
        position = positions[delivery]
        if position is None:
            sides.append(QuerySide(delivery, "n/a", None, "", "not replayed", None, None))
            continue
        request = requests.slice(position, 1).to_pylist()[0]
        query_id = request["query_id"]
        sides.append(_side(request, _known(float(waits[position])), unit, references))
    known = tuple(references.get(query_id, ()))
    value = _known(gain)
    return QueryRow(query_id, texts.get(query_id, ""), known, tuple(sides), times(value), value)


def _side(
    request: dict[str, Any], ttft: float | None, unit: Unit, references: References
) -> QuerySide:
    text, failure = request["output_text"], request["error_type"] or ""
    known = references.get(request["query_id"])
    scored = bool(known) and not failure
    return QuerySide(
        delivery=request["delivery"],
        ttft=unit.text(ttft),
        ttft_s=ttft,
        answer=text if len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT] + " [cut here]",
        failure=failure,
        exact=bool(exact_match(text, known or ())) if scored else None,
        contains=bool(contains_answer(text, known or ())) if scored else None,
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
