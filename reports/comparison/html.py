"""Comparisons as one HTML file that opens from disk and needs nothing else."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from s2l.reports import palette
from s2l.reports.comparison.cells import Row, differences, rows
from s2l.reports.comparison.change import METRICS, RELATIVE
from s2l.reports.comparison.compare import Comparison, ConditionChanges
from s2l.reports.comparison.gate import GateResult
from s2l.reports.comparison.terminal import runs_of
from s2l.reports.comparison.ttft_overlay import Overlay, overlays
from s2l.reports.comparison.words import doubts, letter, sentences
from s2l.reports.standalone import policy, template, template_file, vega_bundle
from s2l.workloads.durable import write_durably


@dataclass(frozen=True, slots=True)
class Bar:
    """A change with its interval, 0 to 200 from left to right, no change at 100."""

    left: float
    width: float
    point: float


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the page's table."""

    row: Row
    bar: Bar | None


@dataclass(frozen=True, slots=True)
class Section:
    """One run against the base: what can be said, then the tables by condition."""

    name: str
    run: str
    sentences: tuple[str, ...]
    remarks: tuple[str, ...]
    tables: tuple[tuple[ConditionChanges, tuple[Line, ...]], ...]


def write_comparison(
    compared: Sequence[Comparison], gates: Sequence[GateResult], path: Path
) -> None:
    """Write the page of comparisons with one base.

    Raises:
        OSError: the file cannot be written.
    """
    write_durably(path, render(compared, gates).encode())


def render(compared: Sequence[Comparison], gates: Sequence[GateResult]) -> str:
    """The page's text."""
    runs = runs_of(compared)
    style = palette.stylesheet() + template_file("report.css") + template_file("compare.css")
    scripts = [vega_bundle(), template_file("report.js")]
    names = [letter(position) for position in range(len(runs))]
    return template("compare.html.j2").render(
        named=list(zip(names, runs, strict=True)),
        doubts=[text for n, run in zip(names, runs, strict=True) for text in doubts(n, run.info)],
        sections=[_section(one, name) for one, name in zip(compared, names[1:], strict=True)],
        differences=differences(runs),
        overlays=_overlays(compared, names),
        gates=gates,
        style=Markup(style),
        scripts=[Markup(script) for script in scripts],
        policy=policy(style, scripts),
    )


def _overlays(compared: Sequence[Comparison], names: Sequence[str]) -> list[Overlay]:
    tables = [run.requests for run in runs_of(compared)]
    return overlays(list(zip(names, tables, strict=True)))


def _section(one: Comparison, name: str) -> Section:
    tables = tuple((condition, _lines(condition)) for condition in one.conditions)
    said = tuple(sentences(one, "A", name))
    return Section(name, one.other.name, said, one.remarks, tables)


def _lines(one: ConditionChanges) -> tuple[Line, ...]:
    """Bars share one scale within the relative changes, and one within the points.

    That of relative changes is logarithmic, so that twice and half are as far from no change, and a
    large one leaves the others to be seen.
    """
    found = rows(one)
    reach = {
        scale: _reach(found, scale) for scale in {METRICS[r.source.metric].scale for r in found}
    }
    return tuple(Line(row, _bar(row, reach[METRICS[row.source.metric].scale])) for row in found)


def _reach(found: Sequence[Row], scale: str) -> float:
    """The largest change of this scale, or end of its interval."""
    mine = [row.source for row in found if METRICS[row.source.metric].scale == scale]
    values = [one.change for one in mine if one.change is not None]
    values += [v for one in mine if one.interval for v in (one.interval.low, one.interval.high)]
    return max((abs(_placed(scale, value)) for value in values), default=0.0) or 1.0


def _placed(scale: str, value: float) -> float:
    """Where a change stands, 0 being none; what is gone altogether as far left as 1 %."""
    return math.log1p(max(value, -0.99)) if scale == RELATIVE else value


def _bar(row: Row, reach: float) -> Bar | None:
    change, interval = row.source.change, row.source.interval
    if change is None:
        return None
    low, high = (interval.low, interval.high) if interval else (change, change)
    scale = METRICS[row.source.metric].scale
    left, right, point = (100 + 96 * _placed(scale, value) / reach for value in (low, high, change))
    return Bar(left, max(right - left, 0.8), point)
