"""Which rate a sweep replays next, for how long, and when it has ended: pure arithmetic."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from s2l.reports.percentiles import samples_needed
from s2l.reports.slo import Slo
from s2l.sweeping.rate_search import RateSearch
from s2l.sweeping.record import SweepPoint, tried


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """``rates`` are replayed as they are, or else searched for by ``search``.

    A point has at least ``min_requests``, twice as many as the objectives' percentiles need, and
    lasts at least ``min_seconds``.
    """

    deliveries: tuple[str, ...]
    slos: tuple[Slo, ...] = ()
    rates: tuple[float, ...] | None = None
    search: RateSearch | None = None
    min_requests: int = 100
    min_seconds: float = 30.0

    def next_rate(self, points: Sequence[SweepPoint]) -> float | None:
        """The rate of the next point; None when there is none."""
        if self.rates is not None:
            if self.saturated(points):
                return None
            done = {point.rate_qps for point in points}
            return next((rate for rate in self.rates if rate not in done), None)
        assert self.search is not None
        nexts = (self.search.next_rate(tried(list(points), d)) for d in self.deliveries)
        return next((rate for rate in nexts if rate is not None), None)

    def saturated(self, points: Sequence[SweepPoint]) -> bool:
        """Whether no delivery completed what was offered at the highest rate so far."""
        highest = max(points, key=lambda point: point.rate_qps, default=None)
        return highest is not None and set(self.deliveries) <= set(highest.saturated)

    def ended(self, points: Sequence[SweepPoint]) -> str:
        """Why the sweep has ended, in a few words; empty while it has not."""
        if self.next_rate(points) is not None:
            return ""
        if self.rates is None:
            return "the search has closed in"
        left_out = len(set(self.rates) - {point.rate_qps for point in points})
        if not left_out:
            return "all rates were replayed"
        highest = max(point.rate_qps for point in points)
        return f"saturated at {highest:g} requests/s; {left_out} higher rates were left out"

    def requests(self, rate_qps: float) -> int:
        """How many requests the point of a rate has."""
        needed = [2 * samples_needed(slo.percentile) for slo in self.slos if slo.percentile]
        return max(self.min_requests, *needed, math.ceil(rate_qps * self.min_seconds - 1e-9))

    def highest_qps(self, points: Sequence[SweepPoint]) -> dict[str, float | None]:
        """By delivery, the highest rate that met the objectives; empty without any."""
        if not self.slos:
            return {}
        search = self.search or RateSearch(1.0)
        return {d: search.found(tried(list(points), d)) for d in self.deliveries}
