"""Gathers the figures of one condition, and resamples all of them in one go."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from s2l.reports.bootstrap import carries_interval
from s2l.reports.comparison.change import Change
from s2l.reports.comparison.resampling import (
    MeanDifference,
    PercentileChanges,
    RateChange,
    Statistic,
    intervals,
)
from s2l.reports.metrics import Codes, Floats
from s2l.reports.percentiles import LEVELS, percentile

FEWEST_QUERIES: Final = 6
"""For any interval: of fewer, resampling tells nothing."""

Sides = tuple[Floats, Floats]
"""A value per pair, of the base and of the other run; NaN where one is not known."""

_Row = tuple[str, str | None, int, float | None, float | None]


@dataclass(frozen=True, slots=True)
class _Measured:
    """One statistic, the figures that it changes, and of how many different queries they are."""

    statistic: Statistic
    rows: list[_Row]
    queries: int

    def carries(self, row: _Row) -> bool:
        """Whether so many queries carry an interval of this figure."""
        if self.queries < FEWEST_QUERIES:
            return False
        return row[1] is None or carries_interval(self.queries, LEVELS[row[1]])

    @property
    def resampled(self) -> bool:
        """Whether they carry an interval of any."""
        return any(map(self.carries, self.rows))


@dataclass(slots=True)
class Collector:
    """``codes`` are the queries of the pairs, as 0, 1, 2...; ``seed`` is the bootstrap's."""

    codes: Codes
    seed: int
    _measured: list[_Measured] = field(default_factory=list)

    def percentiles(self, metric: str, sides: Sides, levels: Sequence[str]) -> None:
        """Percentiles of a metric over the pairs that have it on both sides."""
        base, other, n = _known(sides)
        if not n:
            return
        points = [LEVELS[level] for level in levels]
        rows: list[_Row] = [
            (metric, name, n, percentile(base, at), percentile(other, at))
            for name, at in zip(levels, points, strict=True)
        ]
        self._add(PercentileChanges(*sides, points), rows, sides)

    def mean(self, metric: str, sides: Sides) -> None:
        """The mean over the pairs that have it on both sides."""
        base, other, n = _known(sides)
        if n:
            row = (metric, None, n, float(base.mean()), float(other.mean()))
            self._add(MeanDifference(*sides), [row], sides)

    def rate(self, metric: str, sides: Sides, windows_s: tuple[float | None, float | None]) -> None:
        """A sum per second of each run's own window, where every pair has the addend."""
        first, second = windows_s
        n = _known(sides)[2]
        if not first or not second or not n or n < sides[0].size:
            return
        rates = float(sides[0].sum()) / first, float(sides[1].sum()) / second
        self._add(RateChange(*sides, (first, second)), [(metric, None, n, *rates)], sides)

    def changes(self) -> tuple[Change, ...]:
        """All of them, with the intervals that the queries they are of can carry."""
        every = np.ones(self.codes.size)
        resampled = [one.statistic for one in self._measured if one.resampled]
        found = iter(intervals(resampled, self.codes, self.seed) if resampled else [])
        changes = []
        for one in self._measured:
            drawn = next(found) if one.resampled else [None] * len(one.rows)
            values = one.statistic.changes(every)
            for row, value, interval in zip(one.rows, values, drawn, strict=True):
                known = row[3] is not None and row[4] is not None and not np.isnan(value)
                shown = interval if known and one.carries(row) else None
                changes.append(Change(*row, value if known else None, shown))
        return tuple(changes)

    def _add(self, statistic: Statistic, rows: list[_Row], sides: Sides) -> None:
        """Take them with the number of queries of the pairs that both sides know."""
        known = ~np.isnan(sides[0]) & ~np.isnan(sides[1])
        queries = int(np.unique(self.codes[known]).size)
        self._measured.append(_Measured(statistic, rows, queries))


def _known(sides: Sides) -> tuple[Floats, Floats, int]:
    """The values of the pairs that have one on both sides, and how many there are."""
    base, other = sides
    known = ~np.isnan(base) & ~np.isnan(other)
    return base[known], other[known], int(known.sum())
