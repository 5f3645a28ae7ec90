"""Paired bootstrap: whole queries are drawn with replacement, the same ones for both runs."""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import numpy as np

from s2l.reports.bootstrap import Interval
from s2l.reports.metrics import Codes, Floats

Weights = Floats
"""How often each pair was drawn: whole numbers, as floats so that products of them are quick."""

RESAMPLES: Final = 2_000
_DRAWS: Final = 100_000_000
"""Of all resamples together, so that a million queries still take seconds:"""
_FEWEST_RESAMPLES: Final = 200


class Statistic(Protocol):
    """A change between two runs, as a function of how often each pair counts."""

    def changes(self, weights: Weights) -> tuple[float, ...]:
        """One or several changes; NaN where one has no value."""


class PercentileChanges:
    """Relative change of percentiles: other / base - 1, linear interpolation as NumPy.

    Args:
        base, other: the values of each pair; a pair counts where both are known.
        levels: percentiles, 0 to 100.
    """

    def __init__(self, base: Floats, other: Floats, levels: Sequence[float]) -> None:
        known = np.flatnonzero(~np.isnan(base) & ~np.isnan(other))
        self._shares = np.array(levels) / 100
        self._sides = [
            (rows, values[rows])
            for values in (base, other)
            for rows in [known[np.argsort(values[known], kind="stable")]]
        ]

    def changes(self, weights: Weights) -> tuple[float, ...]:
        """One change a level."""
        base, other = (self._percentiles(weights[rows], values) for rows, values in self._sides)
        found = np.full(base.size, np.nan)
        np.divide(other - base, base, out=found, where=base > 0)
        return tuple(found.tolist())

    def _percentiles(self, counts: Weights, ordered: Floats) -> Floats:
        """Those of a sample in which the ordered values stand ``counts`` times."""
        until = np.cumsum(counts)
        n = int(until[-1]) if until.size else 0
        if n == 0:
            return np.full(self._shares.size, np.nan)
        place = (n - 1) * self._shares
        below = np.floor(place).astype(np.int64)
        low = ordered[np.searchsorted(until, below, side="right")]
        high = ordered[np.searchsorted(until, np.minimum(below + 1, n - 1), side="right")]
        return np.asarray(low + (high - low) * (place - below), dtype=np.float64)


class MeanDifference:
    """Difference of means, other - base, over the pairs where both are known."""

    def __init__(self, base: Floats, other: Floats) -> None:
        difference = other - base
        self._known = (~np.isnan(difference)).astype(np.float64)
        self._difference = np.nan_to_num(difference)

    def changes(self, weights: Weights) -> tuple[float, ...]:
        """The one difference."""
        n = float(weights @ self._known)
        return (float(weights @ self._difference) / n if n else np.nan,)


class RateChange:
    """Relative change of a sum per second; each run's window stays what it was."""

    def __init__(self, base: Floats, other: Floats, windows_s: tuple[float, float]) -> None:
        self._base, self._other = base / windows_s[0], other / windows_s[1]

    def changes(self, weights: Weights) -> tuple[float, ...]:
        """The one change."""
        base, other = float(weights @ self._base), float(weights @ self._other)
        return (other / base - 1 if base > 0 else np.nan,)


def weights_of_resamples(codes: Codes, seed: int) -> Iterator[Weights]:
    """How often each pair was drawn, for one resample of the queries after the other.

    Args:
        codes: of the pairs' queries.
        seed: of the random generator; the same one gives the same resamples.
    """
    if codes.size == 0:
        return
    random = np.random.default_rng(seed)
    n = int(codes.max()) + 1
    for _ in range(min(RESAMPLES, max(_FEWEST_RESAMPLES, _DRAWS // n))):
        drawn = np.bincount(random.integers(0, n, n), minlength=n).astype(np.float64)
        yield drawn[codes]


def intervals(
    statistics: Sequence[Statistic], codes: Codes, seed: int, coverage: float = 0.95
) -> list[list[Interval | None]]:
    """Percentile bootstrap intervals of the changes of each statistic, from the same resamples.

    None where fewer than half of the resamples have a value.
    """
    found: list[list[tuple[float, ...]]] = [[] for _ in statistics]
    for weights in weights_of_resamples(codes, seed):
        for values, statistic in zip(found, statistics, strict=True):
            values.append(statistic.changes(weights))
    tail = (1 - coverage) / 2
    return [
        [_interval(np.array(column), tail, coverage) for column in zip(*values, strict=True)]
        for values in found
    ]


def _interval(values: Floats, tail: float, coverage: float) -> Interval | None:
    known = values[np.isfinite(values)]
    if known.size * 2 < values.size or not known.size:
        return None
    low, high = np.quantile(known, [tail, 1 - tail])
    return Interval(float(low), float(high), coverage)
