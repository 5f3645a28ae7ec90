"""The offered rates of one run where it has several: steps, a ramp, or stated by requests."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.replayer.run import RunInfo
from s2l.reports import metrics
from s2l.reports.metrics import Codes, Floats
from s2l.workloads.arrivals.rate_profile import Segment, parse_profile

RAMP_PARTS: Final = 5
"""A ramp is looked at in so many parts of the same length."""
_PROFILES: Final = ("ramp", "step")


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of every pass with one offered rate, or with one that rises or falls evenly.

    Requests count in the phase in which they were to start: from ``start_s`` up to ``end_s`` since
    the start of their pass, which are None where the requests themselves state the rate.
    """

    from_qps: float
    to_qps: float
    start_s: float | None = None
    end_s: float | None = None

    @property
    def rate_qps(self) -> float:
        """The rate in its middle."""
        return (self.from_qps + self.to_qps) / 2

    @property
    def rates(self) -> str:
        """``4``, or ``2 to 5.6`` where the rate changes."""
        ends = dict.fromkeys((f"{self.from_qps:.3g}", f"{self.to_qps:.3g}"))
        return " to ".join(ends)


def phases_of(info: RunInfo, requests: pa.Table) -> tuple[tuple[Phase, ...], Codes]:
    """The phases in which requests were to start, in their order, and that of each request.

    Args:
        info: of the run, whose schedule states steps and ramps.
        requests: with the columns of ``REQUEST_SCHEMA``, of one pass of each delivery.

    Returns:
        No phase where all of the run has one rate, or does not say.
    """
    stated = pc.unique(requests["rate"].drop_null()).to_pylist()
    if len(stated) > 1:
        return _by_stated_rate(sorted(stated), requests)
    offsets_s = _offsets_s(requests)
    return _used(tuple(_ended(info, list(_planned(info)), offsets_s)), offsets_s)


def _by_stated_rate(rates: list[float], requests: pa.Table) -> tuple[tuple[Phase, ...], Codes]:
    found = pc.index_in(requests["rate"], value_set=pa.array(rates, pa.float64()))
    codes = pc.fill_null(found, -1).to_numpy().astype(np.int64)
    return tuple(Phase(rate, rate) for rate in rates), codes


def _planned(info: RunInfo) -> Iterator[Phase]:
    """What the schedule says; nothing where it names neither a ramp nor steps."""
    name, _, profile = str(info.schedule.get("arrivals", "")).partition(":")
    if name not in _PROFILES:
        return
    try:
        segments = parse_profile(profile, 1.0).segments
    except ValueError:  # another tool's run may call something of its own by this name
        return
    start_s = 0.0
    for segment in segments:
        yield from _parts(segment, start_s)
        start_s += segment.duration_s


def _ended(info: RunInfo, planned: list[Phase], offsets_s: Floats) -> Iterator[Phase]:
    """The phases as long as they really were: the last rate goes on while requests are to start,
    and a count or a duration may have ended the schedule before its profile."""
    last_s = float(offsets_s.max(initial=0.0))
    cut = any(info.options.get(name) is not None for name in ("n_queries", "duration_s"))
    for phase in planned:
        end_s = phase.end_s or 0.0
        if (phase is planned[-1] and last_s > end_s) or (cut and last_s < end_s):
            yield replace(phase, end_s=last_s)
        else:
            yield phase


def _parts(segment: Segment, start_s: float) -> Iterator[Phase]:
    n = 1 if segment.from_qps == segment.to_qps else RAMP_PARTS
    rates = np.linspace(segment.from_qps, segment.to_qps, n + 1).tolist()
    times = np.linspace(start_s, start_s + segment.duration_s, n + 1).tolist()
    for at in range(n):
        yield Phase(rates[at], rates[at + 1], times[at], times[at + 1])


def _offsets_s(requests: pa.Table) -> Floats:
    """When each request was to start, since the first one of its delivery."""
    starts = metrics.column(requests, "start_intended_us")
    offsets = np.zeros(starts.size)
    for name in pc.unique(requests["delivery"]).to_pylist():
        mine = np.asarray(pc.equal(requests["delivery"], name).to_numpy())
        offsets[mine] = (starts[mine] - starts[mine].min()) / metrics.US_PER_S
    return offsets


def _used(planned: tuple[Phase, ...], offsets_s: Floats) -> tuple[tuple[Phase, ...], Codes]:
    """The phases that have requests; the last rate goes on after the last phase's end."""
    begins = np.array([phase.start_s for phase in planned], dtype=np.float64)
    codes = np.searchsorted(begins, offsets_s, side="right") - 1
    used, codes = np.unique(codes, return_inverse=True)
    if used.size < 2:
        return (), np.full(offsets_s.size, -1, dtype=np.int64)
    return tuple(planned[at] for at in used), codes.astype(np.int64)
