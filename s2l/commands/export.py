"""``s2l export``"""

from pathlib import Path
from typing import Final

import click

from s2l.progress import say
from s2l.replayer.run import Run
from s2l.runs import RUN, newest_run
from s2l.workloads.plural import counted
from s2l.writing import writing

_ENDINGS: Final = {"markdown": "md"}
_TABLES: Final = ("parquet", "csv", "json", "markdown")
_PICTURES: Final = ("svg", "pdf")
_FIGURES: Final = ("ttft-ccdf", "ttft-by-rate")


@click.command()
@click.argument("runs", nargs=-1, type=RUN)
@click.option("--format", "kind", type=click.Choice([*_TABLES, *_PICTURES]), required=True)
@click.option("--figure", type=click.Choice(_FIGURES), help="Which one, as svg or pdf.")
@click.option("--out", type=click.Path(path_type=Path), help="The file; else beside the run.")
def export(runs: tuple[Path, ...], kind: str, figure: str | None, out: Path | None) -> None:
    """Write the metrics of a run, request by request, or a figure one column of a paper wide.

    parquet, csv and json have a row per request; markdown is the summary. svg and pdf take several
    RUNS, or a sweep: without --figure one run gives the distribution of TTFT, several give its
    percentiles by offered rate. Without RUNS, the newest is meant.
    """
    chosen = runs or (newest_run(),)
    if kind in _TABLES:
        _table(chosen, kind, figure, out)
    else:
        _picture(chosen, kind, figure, out)


def _table(runs: tuple[Path, ...], kind: str, figure: str | None, out: Path | None) -> None:
    from s2l.reports.export_formats import export_table

    if figure or len(runs) > 1:
        raise click.UsageError(f"--format {kind} takes one run and no --figure")
    target = out or runs[0] / f"metrics.{_ENDINGS.get(kind, kind)}"
    with writing(target):
        written = export_table(Run.open(runs[0]), kind, target)
    say(f"{target}: {counted(written, 'request')}")


def _picture(runs: tuple[Path, ...], kind: str, figure: str | None, out: Path | None) -> None:
    from s2l.reports.paper_figures import write_figure

    opened = [run for path in runs for run in _opened(path)]
    name = figure or _FIGURES[len(opened) > 1]
    target = out or runs[0] / f"{name}.{kind}"
    if target.suffix != f".{kind}":
        raise click.UsageError(f"--out {target} does not end with .{kind}")
    with writing(target):
        write_figure(name, opened, target)
    say(f"figure: {target}")


def _opened(path: Path) -> list[Run]:
    """The run, or the runs of a sweep."""
    from s2l.reports.sweep import is_sweep, sweep_runs

    return sweep_runs(path) if is_sweep(path) else [Run.open(path)]
