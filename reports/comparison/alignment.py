"""The requests of two runs that were the same question in the same place."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_ORDER: Final = ("stream", "wait")
_KEYS: Final = ("delivery", "answer_at", "rate", "repeat", "query_id", "turn")

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, order=True)
class Condition:
    """What is compared on its own: a delivery, where the question was asked early also when, and
    the offered rate where a run has several (None: one rate, or none stated)."""

    delivery: str
    answer_at: str = ""
    rate_qps: float | None = None

    def __str__(self) -> str:
        early = f", answered at {self.answer_at}" if self.answer_at else ""
        return self.delivery + early + ("" if self.rate_qps is None else f", {self.rate_qps:g}/s")


@dataclass(frozen=True, slots=True)
class Aligned:
    """Row i of ``base`` and row i of ``other`` (columns of ``REQUEST_SCHEMA``) are one question.

    All planned requests are there, failed ones too. ``only_base`` and ``only_other`` count those
    without a counterpart.
    """

    condition: Condition
    base: pa.Table
    other: pa.Table
    only_base: int
    only_other: int

    def __len__(self) -> int:
        """The number of pairs."""
        return int(self.base.num_rows)

    @property
    def query_codes(self) -> npt.NDArray[np.int64]:
        """0, 1, 2... for each query: what a bootstrap resamples."""
        codes = self.base["query_id"].combine_chunks().dictionary_encode().indices
        return np.asarray(codes.to_numpy(), dtype=np.int64)


def align_runs(base: pa.Table, other: pa.Table) -> list[Aligned]:
    """Pair two runs' requests by query, delivery, time of the question, repeat and rate.

    A query asked n times is paired turn by turn. One entry for each condition of either run, in
    the order in which reports show deliveries.
    """
    joined = _keyed(base, "base").join(_keyed(other, "other"), list(_KEYS), join_type="full outer")
    several = pc.count_distinct(joined["rate"]).as_py() > 1
    names = joined.group_by(["delivery", "answer_at", "rate"]).aggregate([]).to_pylist()
    found = [_aligned(joined, name, base, other, with_rate=several) for name in names]
    return sorted(found, key=_place)


def _place(one: Aligned) -> tuple[int, str, float]:
    name = one.condition
    known = _ORDER.index(name.delivery) if name.delivery in _ORDER else len(_ORDER)
    return known, name.answer_at, name.rate_qps or 0.0


def _aligned(
    joined: pa.Table, name: dict[str, object], base: pa.Table, other: pa.Table, *, with_rate: bool
) -> Aligned:
    for key in ("delivery", "answer_at", "rate"):
        joined = joined.filter(pc.equal(joined[key], name[key]))
    both = joined.filter(pc.and_(joined["base"].is_valid(), joined["other"].is_valid()))
    both = both.sort_by("base")
    rate = name["rate"] if with_rate else None
    return Aligned(
        Condition(
            str(name["delivery"]), str(name["answer_at"]), rate if isinstance(rate, float) else None
        ),
        base.take(both["base"]),
        other.take(both["other"]),
        only_base=joined["other"].null_count,
        only_other=joined["base"].null_count,
    )


def _keyed(requests: pa.Table, name: str) -> pa.Table:
    """Pairing keys with the row numbers; nulls filled, as a join never matches null with null."""
    rows = pa.table(
        {
            "delivery": requests["delivery"],
            "answer_at": pc.fill_null(requests["answer_at"], ""),
            "rate": pc.fill_null(requests["rate"], -1.0),
            "repeat": pc.fill_null(requests["repeat"], 0),
            "query_id": requests["query_id"],
            "start": requests["start_intended_us"],
            name: pa.array(np.arange(requests.num_rows)),
        }
    )
    rows = rows.sort_by([(key, "ascending") for key in (*_KEYS[:-1], "start", name)])
    return rows.drop_columns("start").append_column("turn", pa.array(_turns(rows)))


def _turns(rows: pa.Table) -> Rows:
    """0, 1, 2... within each run of equal keys."""
    position = np.arange(rows.num_rows, dtype=np.int64)
    if position.size < 2:
        return position
    new = np.zeros(position.size, dtype=np.bool_)
    new[0] = True
    for key in _KEYS[:-1]:
        column = rows[key].combine_chunks()
        new[1:] |= np.asarray(pc.not_equal(column[1:], column[:-1]))
    started: Rows = np.maximum.accumulate(np.where(new, position, 0))
    return position - started
