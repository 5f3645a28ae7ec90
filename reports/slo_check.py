"""Whether the requests of a run, as a whole, met objectives at percentiles."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports import metrics
from s2l.reports.attainment import PER_REQUEST, sent_mask
from s2l.reports.metrics import Floats
from s2l.reports.percentiles import samples_needed
from s2l.reports.slo import Slo
from s2l.reports.units import duration


@dataclass(frozen=True, slots=True)
class SloCheck:
    """One objective held against requests. ``value_s`` is None where they are too few for its
    percentile, and infinite where that falls on a request that failed."""

    slo: Slo
    requests: int
    value_s: float | None

    @property
    def met(self) -> bool:
        """Whether it is below the limit; what cannot be said is not met."""
        return self.value_s is not None and self.value_s < self.slo.limit_s

    @property
    def text(self) -> str:
        """What was found, in a few words: ``ttft_s p95 612 ms (limit 500 ms)``."""
        what = f"{self.slo.metric} p{self.slo.percentile:g}"
        if self.value_s is None:
            needed = samples_needed(self.slo.percentile or 0)
            return f"{what} needs {needed} requests, {self.requests} were sent"
        found = "on a failed request" if math.isinf(self.value_s) else duration(self.value_s)
        return f"{what} {found} (limit {duration(self.slo.limit_s)})"


def check_slos(requests: pa.Table, slos: Sequence[Slo]) -> tuple[SloCheck, ...]:
    """Hold the requests of one delivery, with the columns of ``REQUEST_SCHEMA``, to objectives
    that name percentiles.

    A request that failed counts as slower than any limit: leaving it out would make a server that
    drops what it cannot serve in time look fast. Unsent ones were never the server's.
    """
    return tuple(_check(requests, slo) for slo in slos)


def _check(requests: pa.Table, slo: Slo) -> SloCheck:
    if slo.percentile is None:
        raise ValueError(f"{slo} names no percentile")
    values = _with_failures(requests, slo.metric)
    n = values.size
    if n < samples_needed(slo.percentile):
        return SloCheck(slo, n, None)
    return SloCheck(slo, n, _percentile(np.sort(values), slo.percentile))


def _with_failures(requests: pa.Table, metric: str) -> Floats:
    """The metric of every request that was sent, infinite for those that failed or have none."""
    values = PER_REQUEST[metric](requests)
    succeeded = np.asarray(pc.is_null(requests["error_type"]).to_numpy(), dtype=np.bool_)
    kept = sent_mask(requests)
    if metric == "tpot_s":  # an answer of one token has no time per further token
        single = metrics.column(requests, "output_tokens") <= 1
        kept &= ~(succeeded & single)
    found: Floats = np.where(succeeded & ~np.isnan(values), values, np.inf)[kept]
    return found


def _percentile(ordered: Floats, level: float) -> float:
    """Linear between neighbours as NumPy's, but right where the upper one is infinite."""
    rank = level / 100 * (ordered.size - 1)
    below = math.floor(rank)
    share = rank - below
    if share == 0 or below + 1 == ordered.size:
        return float(ordered[below])
    low, high = float(ordered[below]), float(ordered[below + 1])
    return math.inf if math.isinf(high) else low + (high - low) * share
