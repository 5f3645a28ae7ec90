"""``s2l report``"""

from collections.abc import Sequence
from pathlib import Path

import click

from s2l.progress import console, say
from s2l.replayer.run import Run
from s2l.reports.html import write_html, write_sweep
from s2l.reports.slo import Slo, SloError, parse_slos
from s2l.reports.summary import Summary, summary_json
from s2l.reports.sweep import is_sweep, sweep_runs
from s2l.reports.terminal import print_rates, print_summary
from s2l.runs import RUN, newest_run
from s2l.writing import writing

REPORT = "report.html"


def report_on(
    path: Path, *, out: Path | None = None, slos: Sequence[Slo] | None = None
) -> tuple[Summary, Path]:
    """Summarise a run and write its report; where it went."""
    target = out or path / REPORT
    with writing(target):
        summary, *_ = write_html(Run.open(path), target, slos)
    return summary, target


def report_on_all(
    runs: Sequence[Run], target: Path, slos: Sequence[Slo] | None = None
) -> list[Summary]:
    """Write one page of several runs, by their offered rates first."""
    with writing(target):
        return write_html(runs, target, slos)


def report_on_sweep(
    path: Path, *, out: Path | None = None, slos: Sequence[Slo] | None = None
) -> tuple[list[Summary], Path]:
    """Write the page of a sweep, and the one of each of its runs; where the first went."""
    runs, target = sweep_runs(path), out or path / REPORT
    pages = [run.path / REPORT for run in runs]
    with writing(target):
        return write_sweep(runs, target, pages, slos), target


def _print_rates(runs: Sequence[Run], summaries: Sequence[Summary]) -> None:
    print_rates([(run.path.name, one) for run, one in zip(runs, summaries, strict=True)], console)


@click.command()
@click.argument("runs", nargs=-1, type=RUN)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The page to write; several runs share it.  [default: report.html in each run]",
)
@click.option("--slo", "slo_text", help="Limits for goodput, as ttft_s<500ms,tpot_s<50ms.")
@click.option("--json", "as_json", is_flag=True, help="The figures as JSON on standard output.")
def report(runs: tuple[Path, ...], out: Path | None, slo_text: str | None, as_json: bool) -> None:
    """Write the HTML report of each run, or with --out one of all; without RUNS, of the newest.

    A run whose replay was killed is recovered first. The folder of a sweep gets one page of its
    runs, by their rates.
    """
    slos = _slos(slo_text)
    paths = runs or (newest_run(),)
    if out and len(paths) > 1:
        if any(map(is_sweep, paths)):
            raise click.UsageError("--out takes one sweep, or several runs")
        opened = [Run.open(path) for path in paths]
        summaries = report_on_all(opened, out, slos)
        _print_rates(opened, summaries)
        _conclude(summaries, out, as_json)
        return
    for path in paths:
        if is_sweep(path):
            summaries, target = report_on_sweep(path, out=out, slos=slos)
            _print_rates(sweep_runs(path), summaries)
        else:
            summary, target = report_on(path, out=out, slos=slos)
            summaries = [summary]
            if not as_json:
                print_summary(summary, console)
        _conclude(summaries, target, as_json)


def _conclude(summaries: Sequence[Summary], target: Path, as_json: bool) -> None:
    if as_json:
        for summary in summaries:
            click.echo(summary_json(summary))
    say(f"report: {target}")


def _slos(text: str | None) -> tuple[Slo, ...] | None:
    try:
        return parse_slos(text) if text else None
    except SloError as error:
        raise click.UsageError(f"--slo: {error}") from None
