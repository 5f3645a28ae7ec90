"""What a set of measurements looks like, and which of its percentiles its size can carry."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from s2l.reports.metrics import Floats

LEVELS: Final[dict[str, float]] = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "p999": 99.9}
"""Percentiles by name."""

LABELS: Final[dict[str, str]] = {**{name: name for name in LEVELS}, "p999": "p99.9"}


def samples_needed(level: float) -> int:
    """The fewest samples that carry a percentile: 1 / (1 - p)."""
    return math.ceil(round(100 / (100 - level), 6))


def percentile(values: Floats, level: float) -> float | None:
    """One percentile (0-100), linear as NumPy; None with fewer than 1 / (1 - p) samples."""
    if values.size < samples_needed(level):
        return None
    return float(np.percentile(values, level))


@dataclass(frozen=True, slots=True)
class Distribution:
    """Percentiles of one metric with the mean, the extremes and the number of samples.

    All are None where there are no samples; a percentile also where there are too few.
    """

    n: int
    mean: float | None
    min: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    p999: float | None
    max: float | None

    @classmethod
    def of(cls, values: Floats) -> "Distribution":
        """The distribution of the values that are not NaN."""
        known = values[~np.isnan(values)]
        if known.size == 0:
            return cls(0, *[None] * 8)
        carried = {n: lv for n, lv in LEVELS.items() if known.size >= samples_needed(lv)}
        at = np.percentile(known, list(carried.values())).tolist() if carried else []
        found = dict.fromkeys(LEVELS) | dict(zip(carried, at, strict=True))
        low, mean, high = float(known.min()), float(known.mean()), float(known.max())
        return cls(n=known.size, mean=mean, min=low, max=high, **found)

    def level(self, name: str) -> float | None:
        """The percentile of that name in ``LEVELS``."""
        found: float | None = getattr(self, name)
        return found
