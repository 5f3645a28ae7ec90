"""TTFT and gain against the offered rates of one run."""

from collections.abc import Iterator, Sequence
from typing import Final

from s2l.reports.figure import Figure
from s2l.reports.phase_summary import PhaseDelivery, PhaseSummary
from s2l.reports.sweep import RateGain, RatePoint, RateSeries
from s2l.reports.sweep_chart import sweep_figures

_SHOWN: Final = ("sweep-ttft", "sweep-gain")


def phase_figures(phases: Sequence[PhaseSummary]) -> Iterator[Figure]:
    """As a sweep's; nothing where a rate comes twice: a line through both would go back."""
    rates = [one.phase.rate_qps for one in phases]
    if len(set(rates)) < len(rates) or not all(rates):
        return
    by_rate = sorted(phases, key=lambda one: one.phase.rate_qps)
    series = RateSeries(
        points=tuple(_point(one, side) for one in by_rate for side in one.deliveries),
        gains=tuple(
            RateGain(one.phase.rates, one.phase.rate_qps, one.gain)
            for one in by_rate
            if one.gain is not None
        ),
    )
    yield from (figure for figure in sweep_figures(series) if figure.key in _SHOWN)


def _point(one: PhaseSummary, side: PhaseDelivery) -> RatePoint:
    outcomes = side.outcomes
    return RatePoint(
        run=one.phase.rates,
        rate_qps=one.phase.rate_qps,
        delivery=side.delivery,
        verdict="",
        sent=outcomes.sent,
        failed=sum(outcomes.failed.values()),
        ttft_s=side.ttft_s,
        completed=side.completed,
        output_token_rate=None,
        goodput=None,
        attainment=side.attainment,
    )
