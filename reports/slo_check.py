"""Whether the requests of a run, as a whole, met objectives at percentiles."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports import metrics
from s2l.reports.attainment import PER_REQUEST, sent_mask
from s2l.reports.metrics import Floats
from s2l.reports.percentiles import samples_needed
from s2l.reports.slo import Slo
from s2l.reports.units import duration

MET: Final = "met"
MISSED: Final = "missed"
FAILED: Final = "failed"
TOO_FEW: Final = "too_few"


@dataclass(frozen=True, slots=True)
class SloCheck:
    """One objective held against requests.

    ``value_s`` is None where they are too few for its percentile, and infinite where that falls on
    a request that failed; in JSON both are null. ``outcome`` tells them apart: ``met``, ``missed``,
    ``failed`` (the percentile falls on a failure) or ``too_few``.
    """

    slo: Slo
    requests: int
    value_s: float | None
    outcome: str

    @classmethod
    def of(cls, slo: Slo, requests: int, value_s: float | None) -> "SloCheck":
        """Hold a value, or why there is none, to the objective."""
        return cls(slo, requests, value_s, _outcome(value_s, slo.limit_s))

    @property
    def met(self) -> bool:
        """Whether it is below the limit; what cannot be said is not met."""
        return self.outcome == MET

    @property
    def text(self) -> str:
        """What was found, in a few words: ``ttft_s p95 612 ms (limit 500 ms)``."""
        what = f"{self.slo.metric} p{self.slo.percentile:g}"
        if self.value_s is None:
            needed = samples_needed(self.slo.percentile or 0)
            return f"{what} needs {needed} requests, {self.requests} were sent"
        found = "on a failed request" if self.outcome == FAILED else duration(self.value_s)
        return f"{what} {found} (limit {duration(self.slo.limit_s)})"


def _outcome(value_s: float | None, limit_s: float) -> str:
    if value_s is None:
        return TOO_FEW
    if math.isinf(value_s):
        return FAILED
    return MET if value_s < limit_s else MISSED


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
        return SloCheck.of(slo, n, None)
    return SloCheck.of(slo, n, _percentile(np.sort(values), slo.percentile))


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
