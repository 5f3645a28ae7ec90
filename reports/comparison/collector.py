"""Gathers the figures of one condition, and resamples all of them in one go."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from s2l.reports.bootstrap import carries_interval
from s2l.reports.comparison.change import Change
from s2l.reports.comparison.resampling import (
    Codes,
    MeanDifference,
    PercentileChanges,
    RateChange,
    Statistic,
    intervals,
)
from s2l.reports.metrics import Floats
from s2l.reports.percentiles import LEVELS, percentile

FEWEST_QUERIES = 6
"""For any interval: of fewer, resampling tells nothing."""

Sides = tuple[Floats, Floats]
"""A value per pair, of the base and of the other run; NaN where one is not known."""

_Row = tuple[str, str | None, int, float | None, float | None]


@dataclass(slots=True)
class Collector:
    """``codes`` are the queries of the pairs, as 0, 1, 2...; ``seed`` is the bootstrap's."""

    codes: Codes
    seed: int
    _statistics: list[Statistic] = field(default_factory=list)
    _rows: list[list[_Row]] = field(default_factory=list)

    def percentiles(self, metric: str, sides: Sides, levels: Sequence[str]) -> None:
        """Percentiles of a metric over the pairs that have it on both sides."""
        base, other, n = _known(sides)
        if not n:
            return
        points = [LEVELS[level] for level in levels]
        self._statistics.append(PercentileChanges(*sides, points))
        self._rows.append(
            [
                (metric, name, n, percentile(base, at), percentile(other, at))
                for name, at in zip(levels, points, strict=True)
            ]
        )

    def mean(self, metric: str, sides: Sides) -> None:
        """The mean over the pairs that have it on both sides."""
        base, other, n = _known(sides)
        if n:
            self._statistics.append(MeanDifference(*sides))
            self._rows.append([(metric, None, n, float(base.mean()), float(other.mean()))])

    def rate(self, metric: str, sides: Sides, windows_s: tuple[float | None, float | None]) -> None:
        """A sum per second of each run's own window, where every pair has the addend."""
        first, second = windows_s
        n = _known(sides)[2]
        if not first or not second or not n or n < sides[0].size:
            return
        self._statistics.append(RateChange(*sides, (first, second)))
        rates = float(sides[0].sum()) / first, float(sides[1].sum()) / second
        self._rows.append([(metric, None, n, *rates)])

    def changes(self) -> tuple[Change, ...]:
        """All of them, with the intervals that the sample can carry."""
        every = np.ones(self.codes.size)
        enough = np.unique(self.codes).size >= FEWEST_QUERIES
        found = intervals(self._statistics, self.codes, self.seed) if enough else None
        changes = []
        for at, (statistic, rows) in enumerate(zip(self._statistics, self._rows, strict=True)):
            for place, (row, value) in enumerate(zip(rows, statistic.changes(every), strict=True)):
                known = row[3] is not None and row[4] is not None and not np.isnan(value)
                level = row[1]
                carried = known and (level is None or carries_interval(row[2], LEVELS[level]))
                interval = found[at][place] if found and carried else None
                changes.append(Change(*row, value if known else None, interval))
        return tuple(changes)


def _known(sides: Sides) -> tuple[Floats, Floats, int]:
    """The values of the pairs that have one on both sides, and how many there are."""
    base, other = sides
    known = ~np.isnan(base) & ~np.isnan(other)
    return base[known], other[known], int(known.sum())
