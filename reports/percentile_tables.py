"""Percentiles as text cells, the same for the terminal and the page."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from s2l.reports.bootstrap import Interval
from s2l.reports.delivery import DeliverySummary
from s2l.reports.gain import StreamingGain
from s2l.reports.percentiles import LABELS, LEVELS, Distribution, samples_needed
from s2l.reports.summary import Summary
from s2l.reports.units import Unit, factor, times

GAIN: Final = "wait / stream"
"""Stands in the place of a delivery where a row compares both."""


@dataclass(frozen=True, slots=True)
class PercentileRow:
    """One delivery's percentiles of one metric, or the gain at each of them.

    ``ranges`` has the 95 % interval beside each cell, empty where there is none; ``exact`` the same
    figures with more digits, where there are more.
    """

    delivery: str
    n: int
    cells: tuple[str, ...]
    ranges: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()

    def whole(self) -> list[tuple[str, str, str]]:
        """Each cell with its interval and its exact figure."""
        ranges = self.ranges or ("",) * len(self.cells)
        return list(zip(self.cells, ranges, self.exact or self.cells, strict=True))


@dataclass(frozen=True, slots=True)
class PercentileGroup:
    """One metric, in one unit, for each delivery."""

    title: str
    unit: str
    explains: str
    rows: tuple[PercentileRow, ...]


LATENCIES: Final[dict[str, tuple[str, str]]] = {
    "ttft_s": ("TTFT", "first token, from the moment the context was due"),
    "ttft_service_s": ("TTFT, service", "first token, from the last context really sent"),
    "ttft_user_s": ("TTFT, user", "first token, from the query; retrieval included"),
    "ttft_answer_s": ("TTFT, answer", "first text that is no reasoning, from context due"),
    "ttft_user_actual_s": ("TTFT, user, actual", "first token, from the query's actual start"),
    "tpot_s": ("TPOT", "time per output token after the first"),
    "itl_s": ("ITL", "gaps between content events"),
    "e2e_s": ("End to end", "last token, from the moment the context was due"),
    "e2e_service_s": ("End to end, actual", "last token, from the last context really sent"),
    "e2e_user_s": ("End to end, user", "last token, from the query; retrieval included"),
    "e2e_user_actual_s": ("End to end, user, actual", "last token, from its actual start"),
}
_ACTUAL: Final = {
    "ttft_user_actual_s": "ttft_user_s",
    "e2e_service_s": "e2e_s",
    "e2e_user_actual_s": "e2e_user_s",
}
"""Latencies from actual times, shown beside those from intended ones where they differ."""
_APART_S: Final = 0.001
LAGS: Final[dict[str, tuple[str, str]]] = {
    "schedule_lag_s": ("Schedule lag", "actual start of a request after its intended one"),
    "chunk_lag_s": ("Chunk lag", "the client's sending of a chunk after its intended moment"),
}


def levels(summary: Summary) -> list[str]:
    """Percentiles to show: p99.9 only where a delivery has the samples for it."""
    most = max((one.latencies.ttft_s.n for one in summary.deliveries), default=0)
    return [name for name in LEVELS if name != "p999" or most >= samples_needed(LEVELS[name])]


def level_labels(summary: Summary) -> list[str]:
    """The headings that go with ``levels``."""
    return [LABELS[name] for name in levels(summary)]


def latency_groups(summary: Summary, metrics: dict[str, tuple[str, str]]) -> list[PercentileGroup]:
    """The named distributions of ``Latencies``, each in a unit that fits it.

    The TTFT of the answer is left out where no answer had reasoning before it: it is the TTFT.
    Latencies from actual times are left out where they are within 1 ms of those from intended ones,
    or look the same.
    """
    return [
        _group(summary, name, title, explains)
        for name, (title, explains) in metrics.items()
        if _says_more(summary, name)
    ]


def _says_more(summary: Summary, name: str) -> bool:
    if name == "ttft_answer_s":
        return _reasons(summary)
    if name not in _ACTUAL:
        return True
    intended = _ACTUAL[name]
    pairs = [
        (getattr(one.latencies, name).level(level), getattr(one.latencies, intended).level(level))
        for one in summary.deliveries
        for level in levels(summary)
    ]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    unit = Unit.fitting(value for pair in known for value in pair)
    return any(abs(a - b) > _APART_S and unit.text(a) != unit.text(b) for a, b in known)


def _reasons(summary: Summary) -> bool:
    found = [one.latencies for one in summary.deliveries]
    return any(one.ttft_answer_s != one.ttft_s for one in found)


def _group(summary: Summary, name: str, title: str, explains: str) -> PercentileGroup:
    shown = levels(summary)
    found: list[tuple[DeliverySummary, Distribution]] = [
        (one, getattr(one.latencies, name)) for one in summary.deliveries
    ]
    unit = Unit.fitting(each.level(level) for _, each in found for level in shown)
    rows = tuple(
        PercentileRow(
            one.delivery,
            each.n,
            tuple(unit.text(each.level(level)) for level in shown),
            tuple(_range(one.latencies.intervals.get(name, {}), level, unit) for level in shown),
            tuple(unit.exact(each.level(level)) for level in shown),
        )
        for one, each in found
    )
    if name == "ttft_s" and summary.gain is not None:
        rows += (_gain_row(summary.gain, shown),)
    return PercentileGroup(title, unit.name, explains, rows)


def _range(intervals: Mapping[str, Interval], level: str, unit: Unit) -> str:
    found = intervals.get(level)
    return f"{unit.text(found.low)}\u2013{unit.text(found.high)}" if found else ""


def _gain_row(gain: StreamingGain, shown: list[str]) -> PercentileRow:
    """Wait / stream at each percentile of both sides, over the paired queries."""
    sides = {side.percentile: side for side in gain.sides}
    ranges = {name: _times_range(side.interval) for name, side in sides.items()}
    return PercentileRow(
        GAIN,
        gain.pairs,
        tuple(times(sides[level].ratio) for level in shown),
        tuple(ranges[level] for level in shown),
    )


def _times_range(interval: Interval | None) -> str:
    return f"{factor(interval.low)}\u2013{factor(interval.high)}" if interval else ""
