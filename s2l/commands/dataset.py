"""``s2l dataset``"""

from pathlib import Path

import click
import msgspec

from s2l.exits import FAILED
from s2l.folders import TRACES, newest
from s2l.progress import say
from s2l.workloads.info import describe
from s2l.workloads.manifest import MANIFEST
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import recover as recover_trace
from s2l.workloads.validation import validate as validate_trace

_trace = click.argument("trace", type=click.Path(path_type=Path), required=False)
_json = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")


def newest_trace() -> Path:
    """The newest finished trace of the current folder."""
    how = "record one with: s2l collect crawl"
    return newest(TRACES, MANIFEST, kind="finished trace", how=how)


@click.group()
def dataset() -> None:
    """Look at, check and recover trace datasets. Without TRACE: the newest one."""


@dataset.command()
@_trace
@_json
def info(trace: Path | None, as_json: bool) -> None:
    """What is in a trace, in figures."""
    facts = describe(Trace.open(trace or newest_trace()))
    if as_json:
        click.echo(msgspec.json.encode(facts))
        return
    for name in facts.__dataclass_fields__:
        click.echo(f"{name.replace('_', ' '):<20} {_shown(getattr(facts, name))}")


@dataset.command()
@_trace
@_json
def validate(trace: Path | None, as_json: bool) -> int:
    """Check everything that can be checked; exit code 1 when something is wrong."""
    path = trace or newest_trace()
    problems = validate_trace(path)
    if as_json:
        click.echo(msgspec.json.encode({"trace": str(path), "problems": problems}))
    for problem in problems:
        click.echo(str(problem), err=True)
    if not problems:
        say(f"{path}: valid")
    return FAILED if problems else 0


@dataset.command()
@click.argument("trace", type=click.Path(path_type=Path))
def recover(trace: Path) -> None:
    """Finish a capture that was interrupted, with all that had reached the disk."""
    counts = recover_trace(trace).counts
    say(
        f"{trace}: recovered {counts.arrivals} arrivals of {counts.queries} queries, "
        f"{counts.incomplete_queries} of them not finished"
    )


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{n} {key}" for key, n in value.items()) or "none"
    if isinstance(value, float):
        return f"{value:.3f}"
    return "n/a" if value is None else str(value)
