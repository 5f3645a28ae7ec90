"""The tables of a report as text cells, the same for the terminal and the page."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from s2l.reports.delivery import DeliverySummary
from s2l.reports.gain import StreamingGain
from s2l.reports.percentiles import LABELS, LEVELS, Distribution, samples_needed
from s2l.reports.summary import Summary
from s2l.reports.units import Unit, counted, duration, number, percent, times

GAIN: Final = "wait / stream"
"""Stands in the place of a delivery where a row compares both."""


@dataclass(frozen=True, slots=True)
class PercentileRow:
    """One delivery's percentiles of one metric, or the gain at each of them."""

    delivery: str
    n: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PercentileGroup:
    """One metric, in one unit, for each delivery."""

    title: str
    unit: str
    explains: str
    rows: tuple[PercentileRow, ...]


@dataclass(frozen=True, slots=True)
class FigureRow:
    """One figure for each delivery."""

    label: str
    explains: str
    cells: tuple[str, ...]


LATENCIES: Final[dict[str, tuple[str, str]]] = {
    "ttft_s": ("TTFT", "first token, from the moment the context was due"),
    "ttft_service_s": ("TTFT, service", "first token, from the last context really sent"),
    "ttft_user_s": ("TTFT, user", "first token, from the query; retrieval included"),
    "tpot_s": ("TPOT", "time per output token after the first"),
    "itl_s": ("ITL", "gaps between content events"),
    "e2e_s": ("End to end", "last token, from the moment the context was due"),
    "e2e_user_s": ("End to end, user", "last token, from the query; retrieval included"),
}
LAGS: Final[dict[str, tuple[str, str]]] = {
    "schedule_lag_s": ("Schedule lag", "actual start of a request after its intended one"),
    "chunk_lag_s": ("Chunk lag", "actual send of a chunk after its intended one"),
}

Figure = tuple[str, str, Callable[[DeliverySummary], str]]

REQUESTS: Final[list[Figure]] = [
    ("Succeeded", "of the planned requests", lambda one: _succeeded(one)),
    ("Failed", "by type, in no percentile", lambda one: failures(one)),
]
THROUGHPUT: Final[list[Figure]] = [
    ("Completion", "first start to last end", lambda one: duration(one.throughput.completion_s)),
    ("Requests / s", "succeeded", lambda one: number(one.throughput.request_rate)),
    ("Output tokens / s", "", lambda one: number(one.throughput.output_token_rate)),
    ("All tokens / s", "input and output", lambda one: number(one.throughput.total_token_rate)),
    ("Prompt tokens", "", lambda one: number(one.throughput.prompt_tokens)),
    ("Output tokens", "", lambda one: number(one.throughput.output_tokens)),
    ("Cached tokens", "prompt tokens reused", lambda one: number(one.throughput.cached_tokens)),
    (
        "Invalidated tokens",
        "prefilled, then replaced",
        lambda one: number(one.throughput.invalidated_tokens),
    ),
    (
        "Prefill hidden",
        "median share of the prompt that was ready when due",
        lambda one: percent(one.throughput.prefill_hidden.p50),
    ),
    ("Tokens per event", "mean", lambda one: number(one.latencies.tokens_per_event)),
    ("Tokens counted by", "", lambda one: ", ".join(one.throughput.token_sources) or "n/a"),
]
QUALITY: Final[list[Figure]] = [
    ("Exact match", "mean", lambda one: percent(one.quality.exact_match)),
    ("Token F1", "mean", lambda one: percent(one.quality.token_f1)),
    ("Contains the answer", "mean", lambda one: percent(one.quality.contains_answer)),
    ("Answers scored", "", lambda one: number(one.quality.scored)),
]


def figures(summary: Summary, rows: list[Figure]) -> list[FigureRow]:
    """One row per figure, one cell per delivery of the run."""
    return [
        FigureRow(label, explains, tuple(text(one) for one in summary.deliveries))
        for label, explains, text in rows
    ]


def levels(summary: Summary) -> list[str]:
    """Percentiles to show: p99.9 only where a delivery has the samples for it."""
    most = max((one.latencies.ttft_s.n for one in summary.deliveries), default=0)
    return [name for name in LEVELS if name != "p999" or most >= samples_needed(LEVELS[name])]


def level_labels(summary: Summary) -> list[str]:
    """The headings that go with ``levels``."""
    return [LABELS[name] for name in levels(summary)]


def latency_groups(summary: Summary, metrics: dict[str, tuple[str, str]]) -> list[PercentileGroup]:
    """The named distributions of ``Latencies``, each in a unit that fits it."""
    return [_group(summary, name, title, explains) for name, (title, explains) in metrics.items()]


def failures(one: DeliverySummary) -> str:
    """Failures by type in one line, with what was never sent."""
    parts = [f"{n:,} {error_type}" for error_type, n in one.outcomes.failed.items()]
    if one.outcomes.unsent:
        parts.append(f"{one.outcomes.unsent:,} unsent")
    return ", ".join(parts) or "0"


def parity_text(summary: Summary) -> str | None:
    """Parity in a sentence; None where the run has one delivery."""
    parity = summary.parity
    if parity is None:
        return None
    if parity.temperature:
        return f"Parity: n/a, as answers were sampled at temperature {parity.temperature:g}."
    if parity.share is None:
        return "Parity: n/a, as no query succeeded in both deliveries."
    pairs = counted(parity.pairs, "paired query", "paired queries")
    return f"Parity: {percent(parity.share)}: {parity.identical:,} of {pairs} have identical texts."


def _succeeded(one: DeliverySummary) -> str:
    return f"{one.outcomes.succeeded:,} of {one.outcomes.planned:,}"


def _group(summary: Summary, name: str, title: str, explains: str) -> PercentileGroup:
    shown = levels(summary)
    found: list[tuple[str, Distribution]] = [
        (one.delivery, getattr(one.latencies, name)) for one in summary.deliveries
    ]
    unit = Unit.fitting(each.level(level) for _, each in found for level in shown)
    rows = tuple(
        PercentileRow(delivery, each.n, tuple(unit.text(each.level(level)) for level in shown))
        for delivery, each in found
    )
    if name == "ttft_s" and summary.gain is not None:
        rows += (_gain_row(summary.gain, shown),)
    return PercentileGroup(title, unit.name, explains, rows)


def _gain_row(gain: StreamingGain, shown: list[str]) -> PercentileRow:
    """Wait / stream at each percentile of both sides, over the paired queries."""
    by_name = {side.percentile: times(side.ratio) for side in gain.sides}
    return PercentileRow(GAIN, gain.pairs, tuple(by_name[level] for level in shown))
