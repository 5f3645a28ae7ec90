"""The requests of two runs that were the same question in the same place."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports.metrics import codes
from s2l.reports.moments import AT_THE_END
from s2l.reports.turns import TURN, keyed

_ORDER: Final = ("stream", "wait")
_TURN_OF: Final = ("delivery", "answer_at", "rate", "repeat", "query_id")
_KEYS: Final = [*_TURN_OF, TURN]


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
        return codes(self.base, "query_id")


def align_runs(base: pa.Table, other: pa.Table) -> list[Aligned]:
    """Pair two runs' requests by query, delivery, time of the question, repeat and rate.

    A query asked n times is paired turn by turn. One entry for each condition of either run, in
    the order in which reports show deliveries.
    """
    sides = ((base, "base"), (other, "other"))
    rows = (keyed(t, _TURN_OF, pa.array(np.arange(t.num_rows)), name) for t, name in sides)
    joined = next(rows).join(next(rows), _KEYS, join_type="full outer")
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
    moment = "" if name["answer_at"] == AT_THE_END else str(name["answer_at"])
    return Aligned(
        Condition(str(name["delivery"]), moment, rate if isinstance(rate, float) else None),
        base.take(both["base"]),
        other.take(both["other"]),
        only_base=joined["other"].null_count,
        only_other=joined["base"].null_count,
    )
