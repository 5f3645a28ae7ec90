"""What each delivery did at each offered rate of one run."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports import metrics
from s2l.reports.attainment import attainment
from s2l.reports.delivery import Outcomes
from s2l.reports.gain import StreamingGain
from s2l.reports.metrics import Booleans, ratio
from s2l.reports.pairs import Pairs
from s2l.reports.passes import of_delivery, since_s
from s2l.reports.percentiles import Distribution
from s2l.reports.phases import Phase, phases_of
from s2l.reports.run_data import RunData
from s2l.reports.slo import Slo


@dataclass(frozen=True, slots=True)
class PhaseDelivery:
    """One delivery's requests of a phase.

    ``started`` are those that were to start, per second of the phase; ``completed`` the successes
    that ended while it lasted, per second, whenever they had started. Both are None where the phase
    has no time of its own. ``attainment`` is None without an objective.
    """

    delivery: str
    outcomes: Outcomes
    ttft_s: Distribution
    started: float | None
    completed: float | None
    attainment: float | None


@dataclass(frozen=True, slots=True)
class PhaseSummary:
    """A phase with each delivery's figures; ``gain`` is None unless both were replayed."""

    phase: Phase
    deliveries: tuple[PhaseDelivery, ...]
    gain: StreamingGain | None


def phase_summaries(
    data: RunData, names: Sequence[str], slos: Sequence[Slo]
) -> tuple[PhaseSummary, ...]:
    """By the rate that was offered; nothing where a run has one rate.

    Args:
        data: the final requests.
        names: of the deliveries, in the order in which to show them.
        slos: for attainment.
    """
    requests = data.requests
    phases, codes = phases_of(data.info, requests)
    found = []
    for at, phase in enumerate(phases):
        mine = requests.filter(pa.array(codes == at))
        sides = tuple(_delivery(name, phase, mine, requests, slos) for name in names)
        gain = StreamingGain.of(Pairs.of(mine), data.info.seed) if len(names) > 1 else None
        found.append(PhaseSummary(phase, sides, gain))
    return tuple(found)


def _delivery(
    name: str, phase: Phase, mine: pa.Table, requests: pa.Table, slos: Sequence[Slo]
) -> PhaseDelivery:
    of_phase, of_pass = (of_delivery(table, name) for table in (mine, requests))
    lasts_s = None
    if phase.start_s is not None and phase.end_s is not None:
        lasts_s = phase.end_s - phase.start_s
    return PhaseDelivery(
        delivery=name,
        outcomes=Outcomes.of(of_phase),
        ttft_s=Distribution.of(metrics.ttft_s(metrics.succeeded(of_phase))),
        started=ratio(of_phase.num_rows, lasts_s),
        completed=ratio(int(_ended_in(phase, of_pass).sum()), lasts_s),
        attainment=attainment(of_phase, slos) if slos else None,
    )


def _ended_in(phase: Phase, requests: pa.Table) -> Booleans:
    """Which requests of one delivery succeeded while the phase lasted."""
    begins_s, ends_s = phase.start_s, phase.end_s
    if begins_s is None or ends_s is None or not requests.num_rows:
        return np.zeros(requests.num_rows, dtype=np.bool_)
    start_us = int(metrics.column(requests, "start_intended_us").min())
    ends = since_s(requests, "end_us", start_us)
    fine = np.asarray(pc.is_null(requests["error_type"]).to_numpy(), dtype=np.bool_)
    found: Booleans = fine & (ends >= begins_s) & (ends < ends_s)
    return found
