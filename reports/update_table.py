"""The table of changing context as text cells, the same for the terminal and the page."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from s2l.reports.percentile_tables import PercentileGroup, PercentileRow, levels
from s2l.reports.percentiles import Distribution
from s2l.reports.summary import Summary
from s2l.reports.units import NOT_KNOWN
from s2l.reports.updates import Updates


@dataclass(frozen=True, slots=True)
class _Metric:
    title: str
    unit: str
    explains: str
    of: Callable[[Updates], Distribution]
    text: Callable[[float], str]


def _count(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0") if value < 100 else f"{value:,.0f}"


def _per_cent(share: float) -> str:
    return f"{share * 100:.1f}"


def _ratio(value: float) -> str:
    return f"{value:,.2f}"


_METRICS: Final = (
    _Metric("Updates", "per query", "chunks of context sent", lambda u: u.per_query, _count),
    _Metric(
        "Replacing updates",
        "per query",
        "those that gave the whole context anew",
        lambda u: u.replacing_per_query,
        _count,
    ),
    _Metric(
        "Reuse",
        "%",
        "of the context before, what a replacing update left in place",
        lambda u: u.reuse,
        _per_cent,
    ),
    _Metric(
        "Invalidated tokens",
        "per query",
        "prefilled, then replaced",
        lambda u: u.invalidated_tokens,
        _count,
    ),
    _Metric(
        "Prefill work",
        "x final prompt",
        "tokens prefilled ÷ tokens in the final prompt",
        lambda u: u.prefill_work,
        _ratio,
    ),
)


def update_groups(summary: Summary) -> list[PercentileGroup]:
    """Percentiles of what updates did, in the deliveries where something was replaced."""
    changing = [one for one in summary.deliveries if one.updates.any]
    if not changing:
        return []
    shown = levels(summary)
    return [
        PercentileGroup(
            metric.title,
            metric.unit,
            metric.explains,
            tuple(_row(one.delivery, metric, metric.of(one.updates), shown) for one in changing),
        )
        for metric in _METRICS
    ]


def _row(delivery: str, metric: _Metric, found: Distribution, shown: list[str]) -> PercentileRow:
    values = [found.level(level) for level in shown]
    cells = tuple(NOT_KNOWN if value is None else metric.text(value) for value in values)
    return PercentileRow(delivery, found.n, cells)
