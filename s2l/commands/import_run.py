"""``s2l import-run``"""

from pathlib import Path

import click

from s2l.folders import RUNS, new_folder
from s2l.progress import say
from s2l.reports.run_log import import_run_log
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.plural import counted


@click.command(name="import-run")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="The new run folder.")
@click.option(
    "--delivery",
    type=click.Choice(["stream", "wait"]),
    help="Of requests whose rows do not say whether they streamed.",
)
@click.option("--strict", is_flag=True, help="The first bad row is an error.")
def import_run(file: Path, out: Path | None, delivery: str | None, strict: bool) -> None:
    """Make a run folder of FILE, a run_metrics.csv of Stream2LLM, for s2l report and s2l compare.

    Its TTFT and end-to-end times are the log's own; what the log does not say stays unknown.
    """
    if not file.is_file():
        raise click.UsageError(f"{file}: no such file")
    log = ImportLog(strict=strict)
    target = out or new_folder(RUNS, "import")
    info = import_run_log(file, target, log, delivery=delivery)
    for bad in log.listed:
        say(f"left out: {bad}")
    for what, n in log.warnings.items():
        say(f"left out: {n} {what}")
    say(f"{target}: {counted(info.counts.planned, 'request')} of {log.good:,} good rows")
