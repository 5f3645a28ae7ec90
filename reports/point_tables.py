"""Tables with a row per point: moments of asking, rates of a sweep, types of failure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from s2l.reports.curve import CurvePoint
from s2l.reports.curve_chart import QUALITIES, quality_of
from s2l.reports.percentiles import Distribution
from s2l.reports.phase_summary import PhaseDelivery, PhaseSummary
from s2l.reports.summary import Summary
from s2l.reports.sweep import RateSeries
from s2l.reports.units import NOT_KNOWN, Unit, factor, number, percent, times

MESSAGE_LIMIT: Final = 300
WORDS: Final = ("Delivery", "Verdict", "Run", "For example")
"""Headings of columns that hold words, not figures."""


@dataclass(frozen=True, slots=True)
class PointTable:
    """Headings, and rows of cells of which the first is the row's name."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def columns(self) -> tuple[tuple[str, bool], ...]:
        """Each heading, and whether its column holds words."""
        return tuple((name, name in WORDS) for name in self.head)


def curve_table(points: tuple[CurvePoint, ...]) -> PointTable | None:
    """Quality and waiting by moment of asking; None without points."""
    if not points:
        return None
    named = {
        label: name
        for name, label in QUALITIES.items()
        if any(quality_of(point.quality, name) is not None for point in points)
    }
    unit = Unit.fitting(_middle(point.ttft_user_s) for point in points)
    rows = tuple(
        (
            point.answer_at,
            point.delivery,
            f"{point.succeeded:,} of {point.sent:,}",
            unit.text(_middle(point.ttft_user_s)),
            *(percent(quality_of(point.quality, name)) for name in named.values()),
            percent(point.quality.refused),
        )
        for point in points
    )
    head = ("Asked at", "Delivery", "Answered", f"TTFT, user p50, {unit.name}", *named, "Refusals")
    return PointTable("By the moment at which the question was asked", head, rows)


def rate_table(series: RateSeries) -> PointTable | None:
    """What each delivery did at each rate; None with fewer than two runs that state one."""
    if len({point.run for point in series.points}) < 2:
        return None
    levels = ("p50", "p95", "p99")
    unit = Unit.fitting(point.ttft_s.level(level) for point in series.points for level in levels)
    rows = tuple(
        (
            f"{point.rate_qps:g}",
            point.delivery,
            point.verdict,
            *(unit.text(point.ttft_s.level(level)) for level in levels),
            number(point.completed),
            number(point.output_token_rate),
            number(point.goodput),
            percent(point.attainment),
            f"{point.failed:,}",
            point.run,
        )
        for point in series.points
    )
    ttfts = (f"TTFT {level}, {unit.name}" for level in levels)
    named = ("Offered / s", "Delivery", "Verdict")
    rates = ("Completed / s", "Tokens / s", "Goodput / s", "Attainment", "Failed", "Run")
    return PointTable("By offered rate", (*named, *ttfts, *rates), rows)


def phase_table(phases: tuple[PhaseSummary, ...]) -> PointTable | None:
    """What each delivery did at each rate that one run offered; None without phases."""
    if not phases:
        return None
    levels = ("p50", "p95", "p99")
    sides = [side for phase in phases for side in phase.deliveries]
    unit = Unit.fitting(side.ttft_s.level(level) for side in sides for level in levels)
    slos = any(side.attainment is not None for side in sides)
    rows = tuple(
        (
            phase.phase.rates,
            side.delivery,
            *(unit.text(side.ttft_s.level(level)) for level in levels),
            number(side.started),
            number(side.completed),
            f"{side.outcomes.succeeded:,} of {side.outcomes.planned:,}",
            *((percent(side.attainment),) if slos else ()),
            *_gain_cells(phase, side),
        )
        for phase in phases
        for side in phase.deliveries
    )
    ttfts = (f"TTFT {level}, {unit.name}" for level in levels)
    named = ("Offered / s", "Delivery", *ttfts, "Started / s", "Completed / s", "Succeeded")
    gains = ("Gain", "95 % interval") if phases[0].gain is not None else ()
    head = (*named, *(("Attainment",) if slos else ()), *gains)
    return PointTable("By the rate at which queries were to start", head, rows)


def _gain_cells(phase: PhaseSummary, side: PhaseDelivery) -> tuple[str, ...]:
    """The phase's gain, beside its first delivery."""
    gain = phase.gain
    if gain is None:
        return ()
    if side is not phase.deliveries[0]:
        return "", ""
    ends = gain.interval and (gain.interval.low, gain.interval.high)
    shown = "\u2013".join(map(factor, ends)) if ends else NOT_KNOWN
    return times(gain.median), shown


def failure_table(
    summary: Summary, examples: Mapping[str, str], counts: Mapping[str, Mapping[str, int]]
) -> PointTable | None:
    """Failures by type with one message of each; None where nothing failed.

    Args:
        summary: for the deliveries.
        examples: a message by type.
        counts: by delivery, then by type; unsent requests are of the type ``unsent``.
    """
    names = [one.delivery for one in summary.deliveries]
    types = dict.fromkeys(kind for name in names for kind in counts.get(name, {}))
    if not types:
        return None
    rows = tuple(
        (
            kind,
            *(f"{counts.get(name, {}).get(kind, 0):,}" for name in names),
            examples.get(kind, "")[:MESSAGE_LIMIT],
        )
        for kind in types
    )
    caption = "Requests by type of failure" + (
        ", at all moments of asking" if summary.curve else ""
    )
    return PointTable(caption, ("Type", *names, "For example"), rows)


def _middle(found: Distribution) -> float | None:
    """The median, or the only value."""
    return found.min if found.n == 1 else found.p50
