"""Bootstrap intervals of percentiles, in constant memory for any number of values."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from s2l.reports.metrics import Codes, Floats
from s2l.reports.query_bootstrap import drawn_percentiles, numbered

RESAMPLES: Final = 10_000
PAIRED_RESAMPLES: Final = 2_000
PAIRED_DIRECT_LIMIT: Final = 2_000
"""Up to so many pairs the resamples of pairs are really drawn."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval and its nominal coverage (0.95 for 95 %)."""

    low: float
    high: float
    coverage: float

    @classmethod
    def of(cls, drawn: Floats, coverage: float) -> "Interval":
        """The middle ``coverage`` of what was drawn."""
        tail = (1 - coverage) / 2
        low, high = np.quantile(drawn, [tail, 1 - tail])
        return cls(float(low), float(high), coverage)


def carries_interval(n: int, level: float, coverage: float = 0.95) -> bool:
    """Whether n values can bracket a percentile (0-100) this surely.

    All of them lie on one side of it with probability p^n + (1 - p)^n, and then no interval
    between them covers it: 6 values for the median, 59 for p95, 299 for p99 (David and Nagaraja,
    Order Statistics, section 7.1).
    """
    p = level / 100
    return n > 0 and 1 - p**n - (1 - p) ** n >= coverage


def median_interval(
    values: Floats, seed: int, coverage: float = 0.95, codes: Codes | None = None
) -> Interval | None:
    """Percentile bootstrap interval of the median; None with fewer than 6 values."""
    return quantile_interval(values, 50, seed, coverage, codes)


def quantile_interval(
    values: Floats,
    level: float,
    seed: int,
    coverage: float = 0.95,
    codes: Codes | None = None,
) -> Interval | None:
    """Percentile bootstrap interval of one percentile; None where too few values carry it.

    Args:
        values: a sample, in any order, without NaN; independent but for those of one query.
        level: the percentile, 0 to 100, linear between values as NumPy's.
        seed: of the random generator; the same seed gives the same interval.
        coverage: of the interval, between 0 and 1.
        codes: the query of each value, where queries were asked several times.
    """
    if codes is not None and (queries := numbered(codes)) is not None:
        if not carries_interval(int(queries.max()) + 1, level, coverage):
            return None
        drawn = drawn_percentiles([values], queries, level / 100, np.random.default_rng(seed))
        return Interval.of(drawn[0], coverage)
    if not carries_interval(values.size, level, coverage):
        return None
    random = np.random.default_rng(seed)
    return Interval.of(_resampled(np.sort(values), level / 100, random), coverage)


def paired_ratio_interval(
    numerators: Floats,
    denominators: Floats,
    level: float,
    seed: int,
    coverage: float = 0.95,
    codes: Codes | None = None,
) -> Interval | None:
    """Bootstrap interval of the ratio of both sides' percentiles, pairs resampled as pairs.

    Args:
        numerators, denominators: value i of one belongs to value i of the other; no NaN, and the
            denominators positive.
        level, seed, coverage, codes: as in ``quantile_interval``.
    """
    if codes is not None and (queries := numbered(codes)) is not None:
        if not carries_interval(int(queries.max()) + 1, level, coverage):
            return None
        sides, random = (numerators, denominators), np.random.default_rng(seed)
        above, below = drawn_percentiles(sides, queries, level / 100, random)
        return Interval.of(above / below, coverage)
    if not carries_interval(numerators.size, level, coverage):
        return None
    random, p = np.random.default_rng(seed), level / 100
    draw = _paired_drawn if numerators.size <= PAIRED_DIRECT_LIMIT else _paired_normal
    above, below = draw(numerators, denominators, p, random)
    return Interval.of(above / below, coverage)


def _resampled(ordered: Floats, p: float, random: np.random.Generator) -> Floats:
    """The percentile of resamples with replacement, drawn without drawing the resamples.

    A resample of n values is n uniform positions in the ordered sample, so its k-th smallest is
    the value at the k-th smallest of n uniforms, which is Beta(k, n - k + 1); the next one up is
    that plus a Beta(1, n - k) share of what is left (David and Nagaraja, Order Statistics, ch. 2).
    """
    n = ordered.size
    whole = math.floor((n - 1) * p)
    share, k = (n - 1) * p - whole, whole + 1
    lower = random.beta(k, n - k + 1, RESAMPLES)
    found = ordered[_position(lower, n)]
    if share == 0 or k == n:
        return found
    upper = lower + (1 - lower) * random.beta(1, n - k, RESAMPLES)
    return found + share * (ordered[_position(upper, n)] - found)


def _position(uniform: Floats, n: int) -> npt.NDArray[np.intp]:
    return np.minimum((uniform * n).astype(np.intp), n - 1)


def _paired_drawn(
    one: Floats, other: Floats, p: float, random: np.random.Generator
) -> tuple[Floats, Floats]:
    chosen = random.integers(0, one.size, (PAIRED_RESAMPLES, one.size))
    return np.quantile(one[chosen], p, axis=1), np.quantile(other[chosen], p, axis=1)


def _paired_normal(
    one: Floats, other: Floats, p: float, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """For many pairs: the ranks of both percentiles are jointly normal about p.

    Their variance is p (1 - p) / n and their covariance (P(both below) - p^2) / n: Bahadur's
    representation of a sample quantile (Serfling, Approximation Theorems, section 2.5).
    """
    n = one.size
    limits = np.quantile(one, p), np.quantile(other, p)
    both = float(((one <= limits[0]) & (other <= limits[1])).mean())
    apart = (both - p * p) / n
    spread = p * (1 - p) / n
    ranks = random.multivariate_normal(
        [p, p], [[spread, apart], [apart, spread]], PAIRED_RESAMPLES, method="eigh"
    )
    sides = zip((np.sort(one), np.sort(other)), np.clip(ranks, 0, 1).T * (n - 1), strict=True)
    above, below = (np.interp(rank, np.arange(n), ordered) for ordered, rank in sides)
    return above, below
