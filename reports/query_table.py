"""One row per query: both deliveries' times and answers beside each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports.answers import References
from s2l.reports.metrics import Floats, ttft_s
from s2l.reports.pairs import align
from s2l.reports.percentiles import Distribution
from s2l.reports.quality import contains_answer, exact_match
from s2l.reports.run_data import RunData
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

    @property
    def lead(self) -> str:
        """What stands for the answers while they are folded: the first of them, or the failure."""
        answers = [side.answer for side in self.sides if not side.failure]
        return answers[0] if answers else f"no answer: {self.sides[0].failure}"

    @property
    def same(self) -> bool:
        """Whether both deliveries gave the same answer, which then is shown once."""
        answers = [side.answer for side in self.sides if not side.failure]
        return len(answers) > 1 and len(answers) == len(self.sides) and len(set(answers)) == 1


@dataclass(frozen=True, slots=True)
class QueryTable:
    """The rows shown, the unit of their times, and how many queries there are in all."""

    rows: tuple[QueryRow, ...]
    unit: str
    total: int


def query_table(data: RunData, deliveries: list[str]) -> QueryTable:
    """Rows in the order of the replay; of a large run, a thinned choice that keeps the extremes.

    Args:
        data: the run's.
        deliveries: that the run has, in the order in which to show them.
    """
    requests = data.requests
    aligned = align(requests)
    waits = ttft_s(requests)
    waits[np.asarray(requests["error_type"].is_valid())] = np.nan
    gains = _gains(aligned, waits)
    kept = _kept(gains)
    shown = aligned.take(pa.array(kept)).to_pylist()
    found = Distribution.of(waits)
    unit = Unit.fitting([found.min, found.max])
    source = _Source(data, deliveries, unit, waits, *_questions(data, shown))
    rows = [source.row(at, float(gains[n])) for n, at in zip(kept.tolist(), shown, strict=True)]
    return QueryTable(tuple(rows), unit.name, aligned.num_rows)


def _questions(
    data: RunData, shown: list[dict[str, int | None]]
) -> tuple[Mapping[str, str], References]:
    """Texts and references of the queries shown."""
    positions = sorted({at for row in shown for at in row.values() if at is not None})
    ids = pc.unique(data.requests["query_id"].take(pa.array(positions, pa.int64())))
    mine = data.queries.filter(pc.is_in(data.queries["query_id"], value_set=ids))
    rows = mine.to_pylist()
    return (
        {row["query_id"]: row["text"] for row in rows},
        {row["query_id"]: row["answers"] or () for row in rows},
    )


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


@dataclass(frozen=True, slots=True)
class _Source:
    """Where the rows come from; ``waits`` is the TTFT of each request, NaN where it has none."""

    data: RunData
    deliveries: list[str]
    unit: Unit
    waits: Floats
    texts: Mapping[str, str]
    references: References

    def row(self, positions: dict[str, int | None], gain: float) -> QueryRow:
        """The row of one query, whose requests stand at these positions."""
        sides, query_id, asked_at = [], "", None
        for delivery in self.deliveries:
            position = positions[delivery]
            if position is None:
                sides.append(QuerySide(delivery, "n/a", None, "", "not replayed", None, None))
                continue
            request = self.data.requests.slice(position, 1).to_pylist()[0]
            query_id, asked_at = request["query_id"], request["answer_at"]
            text = self.data.texts[position].as_py()
            ttft = _known(float(self.waits[position]))
            sides.append(_side(request, text, ttft, self.unit, self.references))
        known = tuple(self.references.get(query_id, ()))
        value, text = _known(gain), self.texts.get(query_id, "")
        if asked_at:
            text = f"{text or query_id} (asked at {asked_at})"
        return QueryRow(query_id, text, known, tuple(sides), times(value), value)


def _side(
    request: dict[str, Any], text: str, ttft: float | None, unit: Unit, references: References
) -> QuerySide:
    failure = request["error_type"] or ""
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
