"""Bootstrap interval of a median, in constant memory for any number of values."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from s2l.reports.metrics import Floats

RESAMPLES: Final = 10_000
FEWEST: Final = 6
"""With 5 values even their whole range covers the median only 93.75 % of the time (1 - 2 / 2^5)."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval and its nominal coverage (0.95 for 95 %)."""

    low: float
    high: float
    coverage: float


def median_interval(values: Floats, seed: int, coverage: float = 0.95) -> Interval | None:
    """Percentile bootstrap interval of the median; None with fewer than 6 values.

    Args:
        values: the sample, in any order, without NaN.
        seed: of the random generator; the same seed gives the same interval.
        coverage: of the interval, between 0 and 1.
    """
    if values.size < FEWEST:
        return None
    medians = _resampled_medians(np.sort(values), np.random.default_rng(seed))
    tail = (1 - coverage) / 2
    low, high = np.quantile(medians, [tail, 1 - tail])
    return Interval(float(low), float(high), coverage)


def _resampled_medians(ordered: Floats, random: np.random.Generator) -> Floats:
    """Medians of resamples with replacement, drawn without drawing the resamples.

    A resample of n values is n uniform positions in the ordered sample, so its k-th smallest is
    the value at the k-th smallest of n uniforms, which is Beta(k, n - k + 1); the next one up is
    that plus a Beta(1, n - k) share of what is left (David and Nagaraja, Order Statistics, ch. 2).
    """
    n = ordered.size
    k = (n + 1) // 2
    lower = random.beta(k, n - k + 1, RESAMPLES)
    if n % 2:
        return ordered[_position(lower, n)]
    upper = lower + (1 - lower) * random.beta(1, n - k, RESAMPLES)
    return (ordered[_position(lower, n)] + ordered[_position(upper, n)]) / 2


def _position(uniform: Floats, n: int) -> npt.NDArray[np.intp]:
    return np.minimum((uniform * n).astype(np.intp), n - 1)
