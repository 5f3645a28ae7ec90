"""The search for the highest rate that meets objectives: which rate to try next."""

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RateSearch:
    """Doubling or halving from ``first`` until one rate meets the objectives and one does not;
    then the geometric middle between them, until they are within ``resolution`` of each other.

    The lowest rate that failed bounds the search, whatever higher ones did by luck.
    """

    first: float
    resolution: float = 0.05
    lowest: float = 1e-3
    highest: float = 1e5

    def next_rate(self, tried: Mapping[float, bool]) -> float | None:
        """The rate to try, given which rates met the objectives; None when it is found."""
        failed = min((rate for rate, met in tried.items() if not met), default=None)
        met = self.found(tried)
        if met is None and failed is None:
            return self.first
        if failed is None:
            assert met is not None
            return None if met >= self.highest else min(met * 2, self.highest)
        if met is None:
            return None if failed <= self.lowest else max(failed / 2, self.lowest)
        if failed / met <= 1 + self.resolution:
            return None
        # Three digits are enough for a name, and are between the two at any resolution of use.
        middle = float(f"{math.sqrt(met * failed):.3g}")
        return middle if met < middle < failed else None

    def found(self, tried: Mapping[float, bool]) -> float | None:
        """The highest rate that met the objectives, below every one that did not."""
        failed = min((rate for rate, met in tried.items() if not met), default=math.inf)
        return max((rate for rate, met in tried.items() if met and rate < failed), default=None)
