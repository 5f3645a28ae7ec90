"""The report as one HTML file that opens from disk and needs nothing else."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from urllib.parse import quote

from markupsafe import Markup

from s2l.replayer.run import Run
from s2l.reports import palette
from s2l.reports.figure import Figure
from s2l.reports.headline import asked_early
from s2l.reports.page import RunView
from s2l.reports.point_tables import PointTable, rate_table
from s2l.reports.slo import Slo
from s2l.reports.standalone import policy, template, template_file, vega_bundle
from s2l.reports.summary import Summary
from s2l.reports.sweep import rate_series
from s2l.reports.sweep_chart import sweep_figures
from s2l.workloads.durable import write_durably


@dataclass(frozen=True, slots=True)
class Overview:
    """Several runs by their offered rate; ``left_out`` says which have none."""

    figures: tuple[Figure, ...]
    table: PointTable
    left_out: str

    @classmethod
    def of(cls, named: Sequence[tuple[str, Summary]]) -> "Overview | None":
        """Of the named runs; None where fewer than two of them state a rate."""
        series = rate_series(named)
        table = rate_table(series)
        if table is None:
            return None
        known = {point.run for point in series.points}
        without = [name for name, _ in named if name not in known]
        left_out = f"Without a rate: {', '.join(without)}." if without else ""
        return cls(tuple(sweep_figures(series)), table, left_out)


@dataclass(frozen=True, slots=True)
class Brief:
    """One run in a line, with a link to its page."""

    name: str
    link: str
    trace: str
    verdict: str
    findings: tuple[str, ...]
    headline: str

    @classmethod
    def of(cls, view: RunView, link: str) -> "Brief":
        """What to say of it."""
        validity = view.info.validity
        findings = tuple(finding.text for finding in validity.findings)
        said = (view.name, quote(link), view.info.trace.name, validity.verdict, findings)
        early = asked_early(view.summary.asked_at)
        return cls(*said, " ".join((str(view.headline), *early)))


def write_html(
    runs: Run | Sequence[Run], path: Path, slos: Sequence[Slo] | None = None
) -> list[Summary]:
    """Write one page that holds the report of each run, in the order given; their summaries.

    Args:
        runs: one or more; several of one trace and server are shown by their rates first.
        path: of the page.
        slos: for goodput and attainment; None: those that each run's own options state.

    Raises:
        RunError: a run's table is missing or damaged.
        OSError: the file cannot be written.
    """
    chosen = [runs] if isinstance(runs, Run) else list(runs)
    views = [RunView.of(run, slos) for run in chosen]
    write_views(views, path)
    return [view.summary for view in views]


def write_sweep(
    runs: Sequence[Run], path: Path, pages: Sequence[Path], slos: Sequence[Slo] | None = None
) -> list[Summary]:
    """Write the page of a sweep: its runs by rate, with a link to each one's own page.

    Args:
        runs: of the sweep.
        path: of the page.
        pages: where the page of each run goes.
        slos: as for ``write_html``.

    Raises:
        RunError: a run's table is missing or damaged.
        OSError: a file cannot be written.
    """
    briefs, summaries = [], []
    for run, page in zip(runs, pages, strict=True):
        view = RunView.of(run, slos)  # one at a time: a run may be large
        write_views([view], page)
        link = os.path.relpath(page.resolve(), path.resolve().parent)
        briefs.append(Brief.of(view, PurePath(link).as_posix()))
        summaries.append(view.summary)
    named = [(run.path.name, one) for run, one in zip(runs, summaries, strict=True)]
    _write(path, _rendered([], Overview.of(named), briefs))
    return summaries


def write_views(views: Sequence[RunView], path: Path) -> None:
    """Write the page of these views. Raises OSError."""
    _write(path, render(views))


def render(views: Sequence[RunView]) -> str:
    """The page's text."""
    return _rendered(views, Overview.of([(view.name, view.summary) for view in views]), [])


def _write(path: Path, text: str) -> None:
    write_durably(path, text.encode())


def _rendered(views: Sequence[RunView], overview: Overview | None, briefs: Sequence[Brief]) -> str:
    style = palette.stylesheet() + template_file("report.css")
    scripts = [vega_bundle(), template_file("report.js")]
    return template("report.html.j2").render(
        views=views,
        overview=overview,
        briefs=briefs,
        style=Markup(style),
        scripts=[Markup(script) for script in scripts],
        policy=policy(style, scripts),
    )
