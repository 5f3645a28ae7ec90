"""What went on over time, as points for a chart: bins of counts, and the largest value of each."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from s2l.reports.metrics import Floats

BINS: Final = 120
"""Points per line at most."""
FEWEST_BINS: Final = 10
EVENTS_PER_SPAN: Final = 10


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one line: seconds since its pass began, and values."""

    time_s: Floats
    values: Floats


def largest_per_bin(time_s: Floats, values: Floats) -> Series:
    """The largest value of each of ``BINS`` equal spans of time, at its own time.

    No peak is lost by it; spans without a value have no point.
    """
    known = ~(np.isnan(values) | np.isnan(time_s))
    time_s, values = time_s[known], values[known]
    if values.size <= BINS:
        order = np.argsort(time_s, kind="stable")
        return Series(time_s[order], values[order])
    bins = _bins(time_s, BINS)
    order = np.lexsort((values, bins))
    last = np.r_[np.flatnonzero(np.diff(bins[order])), order.size - 1]
    chosen = order[last]
    return Series(time_s[chosen], values[chosen])


def per_second(time_s: Floats, end_s: float) -> Series:
    """How many events a second, in equal spans from 0 to ``end_s``, each at its beginning.

    A span has at least a second, and ``EVENTS_PER_SPAN`` events on average where there are so many.
    """
    found = time_s[~np.isnan(time_s)]
    if not found.size or not end_s > 0:
        return Series(np.empty(0), np.empty(0))
    n = int(min(max(end_s, 1), max(found.size / EVENTS_PER_SPAN, FEWEST_BINS), BINS))
    counts, edges = np.histogram(found, n, (0.0, end_s))
    rate = counts * n / end_s
    return Series(edges, np.r_[rate, rate[-1]])


def _bins(time_s: Floats, n: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    start, end = float(time_s.min()), float(time_s.max())
    width = (end - start) / n or 1.0
    return np.minimum(((time_s - start) / width).astype(np.int64), n - 1)
