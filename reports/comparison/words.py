"""A comparison in plain sentences."""

from collections.abc import Sequence
from typing import Final

from s2l.replayer.run import RunInfo
from s2l.reports.bootstrap import Interval
from s2l.reports.comparison.change import (
    LATENCIES,
    METRICS,
    PLAIN,
    POINTS,
    QUALITY,
    RELATIVE,
    Change,
)
from s2l.reports.comparison.compare import BOTH, Comparison, ConditionChanges
from s2l.workloads.plural import counted

_CLEAR: Final = ("better", "worse")
_OUTCOMES: Final = ("success", "attainment", "goodput", "request_rate")
_ACROSS: Final = ("streaming_gain", "parity")


def letter(position: int) -> str:
    """A for the base, B for the next run, and so on; after Z by number."""
    return chr(ord("A") + position) if position < 26 else f"run {position + 1}"


def doubts(name: str, info: RunInfo) -> list[str]:
    """Why a run is not to be trusted, to be said before any of its figures; empty if it is."""
    validity = info.validity
    interrupted = ["it was interrupted"] if info.interrupted else []
    if validity.verdict == "valid" and not interrupted:
        return []
    counting = [one for one in validity.findings if one.severity in ("degraded", "invalid")]
    reasons = [finding.text.rstrip(".") for finding in counting]
    said = "; ".join(interrupted + reasons) or "no reason stated"
    return [f"{name} is {_article(validity.verdict)} run: {said}."]


def sentences(compared: Comparison, base: str, other: str) -> list[str]:
    """What can be said of ``other`` against ``base``, most important first."""
    found = []
    for one in compared.conditions:
        if one.condition.delivery == BOTH:
            said = _higher_or_lower(one, _ACROSS, other)
        else:
            said = [*_latencies(one, other), _quality(one, other)]
            said += _higher_or_lower(one, _OUTCOMES, other)
            said += _texts(one, base, other)
        found += [f"{one.condition}: {text}." for text in said]
    return found


def change_text(change: Change) -> str:
    """``-12 % [-15, -9]``, ``+3.1 points [1.2, 5]``, with the interval where there is one."""
    if change.change is None:
        return "n/a"
    ends = "" if change.interval is None else f" {_ends(change, change.interval)}"
    return f"{_figure(change, change.change, sign='+')}{_unit(change)}{ends}"


def _latencies(one: ConditionChanges, other: str) -> list[str]:
    """Where it is faster or slower, metric by metric; then the metrics of which nothing is told."""
    by_metric = {name: _changes(one, [name]) for name in LATENCIES}
    clear = {n: c for n, c in by_metric.items() if any(x.verdict in _CLEAR for x in c)}
    said = [f"{other} is {_levels(changes)}" for changes in clear.values()]
    rest = {name: changes for name, changes in by_metric.items() if changes and name not in clear}
    for why in dict.fromkeys(_few(changes) for changes in rest.values()):
        names = [METRICS[n].phrase for n, changes in rest.items() if _few(changes) == why]
        said.append(f"no difference in {_listed(names, 'or')} can be told{why}")
    return said


def _levels(changes: Sequence[Change]) -> str:
    """``faster in TTFT at p50 by 9 % [7, 11] and at p95 by 12 % [9, 15]``, and what is open."""
    parts, before = [], ""
    for change in changes:
        if change.verdict in _CLEAR:
            word = "faster" if change.verdict == "better" else "slower"
            lead = "" if word == before else f"{word} in {METRICS[change.metric].phrase} "
            parts.append(f"{lead}at {change.level} by {_by(change)}")
            before = word
    none = [c.level or "" for c in changes if c.verdict == "none"]
    told = f"; no difference can be told at {_listed(none, 'or')}" if none else ""
    return f"{_listed(parts)}{told}{_few(changes)}"


def _few(changes: Sequence[Change]) -> str:
    few = [change.level or "" for change in changes if change.verdict == "unknown"]
    return f" (too few queries for an interval at {_listed(few)})" if few else ""


def _by(change: Change) -> str:
    """The size of a change with its interval, both as positive as the change is clear."""
    value, interval = change.change or 0.0, change.interval
    if value < 0 and interval is not None:
        value, interval = -value, Interval(-interval.high, -interval.low, interval.coverage)
    ends = "" if interval is None else f" {_ends(change, interval)}"
    return f"{_figure(change, abs(value))}{_unit(change)}{ends}"


def _quality(one: ConditionChanges, other: str) -> str:
    changes = _changes(one, QUALITY)
    if not [change for change in changes if change.metric != "refusal"]:
        return "quality is not compared, as the answers have no scores"
    clear = [_scored(change) for change in changes if change.verdict in (*_CLEAR, "changed")]
    if clear:
        return f"{other} is {_listed(clear)}"
    few = all(change.verdict == "unknown" for change in changes)
    return f"no difference in quality can be told{' (too few queries)' if few else ''}"


def _scored(change: Change) -> str:
    if change.verdict == "changed":
        return f"refusing {'more' if (change.change or 0) > 0 else 'less'} often by {_by(change)}"
    return f"{change.verdict} in {METRICS[change.metric].phrase} by {_by(change)}"


def _higher_or_lower(one: ConditionChanges, metrics: Sequence[str], other: str) -> list[str]:
    """Of these metrics, those that clearly changed."""
    return [
        f"{METRICS[change.metric].phrase} of {other} is "
        f"{'higher' if (change.change or 0) > 0 else 'lower'} by {_by(change)}"
        for change in _changes(one, metrics)
        if change.verdict in _CLEAR
    ]


def _texts(one: ConditionChanges, base: str, other: str) -> list[str]:
    if not one.succeeded or one.identical is None:
        return []
    pairs = counted(one.succeeded, "query", "queries")
    return [f"{base} and {other} give the same text for {one.identical:,} of {pairs}"]


def _changes(one: ConditionChanges, metrics: Sequence[str]) -> list[Change]:
    return [c for c in one.changes if c.metric in metrics and c.change is not None]


def _unit(change: Change) -> str:
    return {RELATIVE: " %", POINTS: " points", PLAIN: ""}[METRICS[change.metric].scale]


def _ends(change: Change, interval: Interval) -> str:
    # Without separators of thousands: a comma stands between the ends.
    low, high = (_figure(change, end).replace(",", "") for end in (interval.low, interval.high))
    return f"[{low}, {high}]"


def _figure(change: Change, value: float, sign: str = "-") -> str:
    """Per cent and points: one decimal below 10, none from there on; three of what is plain."""
    if METRICS[change.metric].scale == PLAIN:
        return f"{value:{sign}.3f}"
    decimals = 1 if abs(value) < 0.0995 else 0
    text = f"{value * 100:{sign},.{decimals}f}"
    return text.removesuffix(".0") if text.strip("+-") != "0.0" else "0"


def _listed(parts: Sequence[str], word: str = "and") -> str:
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def _article(word: str) -> str:
    return f"an {word}" if word[:1] in "aeiou" else f"a {word}"
