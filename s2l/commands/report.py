"""``s2l report``"""

from pathlib import Path

import click

from s2l.folders import RUNS, newest
from s2l.progress import console, say
from s2l.replayer.run import Run
from s2l.reports.html import write_html
from s2l.reports.summary import Summary, summarize, summary_json
from s2l.reports.terminal import print_summary

REPORT = "report.html"


def report_on(path: Path, *, out: Path | None = None) -> tuple[Summary, Path]:
    """Summarise a run and write its report; where it went."""
    summary = summarize(run := Run.open(path))
    target = out or path / REPORT
    write_html(run, target)
    return summary, target


@click.command()
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Where to write it (one run only).")
@click.option("--json", "as_json", is_flag=True, help="The figures as JSON on standard output.")
def report(runs: tuple[Path, ...], out: Path | None, as_json: bool) -> None:
    """Write the HTML report of each run; without RUNS, of the newest."""
    if out and len(runs) > 1:
        raise click.UsageError("--out takes one run")
    how = "make one with: s2l replay"
    for path in runs or (newest(RUNS, "run.json", kind="run", how=how),):
        summary, target = report_on(path, out=out)
        if as_json:
            click.echo(summary_json(summary))
        else:
            print_summary(summary, console)
        say(f"report: {target}")
