"""The report as one HTML file that opens from disk and needs nothing else."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from s2l.replayer.run import Run
from s2l.reports import palette
from s2l.reports.page import RunView
from s2l.reports.standalone import policy, template, template_file, vega_bundle


def write_html(runs: Run | Sequence[Run], path: Path) -> None:
    """Write one page that holds the report of each run, in the order given.

    Raises:
        RunError: a run's table is missing or damaged.
        OSError: the file cannot be written.
    """
    chosen = [runs] if isinstance(runs, Run) else list(runs)
    path.write_text(render([RunView.of(run) for run in chosen]), encoding="utf-8", newline="\n")


def render(views: Sequence[RunView]) -> str:
    """The page's text."""
    style = palette.stylesheet() + template_file("report.css")
    scripts = [vega_bundle(), template_file("report.js")]
    return template("report.html.j2").render(
        views=views,
        style=Markup(style),
        scripts=[Markup(script) for script in scripts],
        policy=policy(style, scripts),
    )
