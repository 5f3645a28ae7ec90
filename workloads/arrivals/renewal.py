"""Starts with independent gaps at one rate: constant, Poisson, gamma."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from s2l.workloads.arrivals.base import OffsetsUs, checked_rate, whole_us
from s2l.workloads.arrivals.unit_gaps import unit_gaps


@dataclass(frozen=True, slots=True)
class Renewal:
    """Gaps of ``unit_gaps`` at a rate: ``burstiness`` 1 is a Poisson process, infinity is one
    query every 1/rate seconds."""

    burstiness: float
    ends_after_s: None = None

    def followed(self, recorded_us: Sequence[int]) -> int:
        """None: every gap is made."""
        return 0

    def __call__(
        self, n: int, rate_qps: float | None, seed: int, recorded_us: Sequence[int]
    ) -> OffsetsUs:
        """See ``ArrivalProcess``.

        Random gaps are whole microseconds before they are summed, so that sums are exact
        everywhere; even offsets are rounded each by itself, so that none drifts.
        """
        gap_us = 1e6 / checked_rate(n, rate_qps)
        if math.isinf(self.burstiness):
            return whole_us(np.arange(n) * gap_us)
        gaps_us = whole_us(unit_gaps(max(0, n - 1), self.burstiness, seed) * gap_us)
        return np.concatenate([np.zeros(min(n, 1), dtype=np.int64), np.cumsum(gaps_us)])
