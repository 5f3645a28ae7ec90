"""``s2l dataset``"""

import importlib
from pathlib import Path
from typing import Final

import click
import msgspec

from s2l.exits import FAILED
from s2l.named_trace import named_trace, opened_trace
from s2l.progress import say
from s2l.workloads.info import describe
from s2l.workloads.manifest import MANIFEST
from s2l.workloads.plural import counted
from s2l.workloads.trace_writer import recover as recover_trace
from s2l.workloads.validation import validate as validate_trace

_trace = click.argument("trace", required=False)
_json = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")


_LAZY: Final = {
    "export": ("export_dataset", "Write a trace in another format."),
    "import": ("import_dataset", "Import a trace of another kind."),
    "hide": ("hide_texts", "Hide the texts of a trace, or their addresses as well."),
    "list": ("list_cached", "Traces that were pulled to this machine."),
    "pack": ("pack_trace", "Make a trace ready to be shared: an archive or a folder."),
    "pull": ("pull_trace", "Fetch a trace from the Hub, the web or a folder, and check it."),
    "push": ("push_trace", "Publish a trace on the Hub, on the web or in a folder."),
    "refetch": ("refetch_texts", "Fill hidden texts in from their addresses; compare hashes."),
    "rm": ("remove_cached", "Remove traces that were pulled."),
    "scrub": ("scrub_trace", "Take emails, phone numbers, keys and tokens out of a trace."),
    "stats": ("dataset_stats", "What workloads are like, side by side."),
    "synth": ("dataset_synth", "Make a workload of a published shape, or like another dataset."),
    "takedown": ("take_down_documents", "Drop documents by the patterns of their addresses."),
}
"""Commands in modules of their own, ``dataset_<name>``, imported when they are called."""


class _Group(click.Group):
    """Knows the help of its lazy commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *_LAZY})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _LAZY:
            return super().get_command(ctx, cmd_name)
        module = importlib.import_module(f"s2l.commands.dataset_{cmd_name}")
        command: click.Command = getattr(module, _LAZY[cmd_name][0])
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = {name: text for name, (_, text) in _LAZY.items()}
        lines |= {name: command.get_short_help_str(80) for name, command in self.commands.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(lines.items()))


@click.group(cls=_Group)
def dataset() -> None:
    """Look at, make, convert, check, share and recover trace datasets.

    TRACE is a folder, an archive, or an address such as hf:USER/NAME@REVISION, which is pulled
    first; without one, the newest trace is meant.
    """


@dataset.command()
@_trace
@_json
def info(trace: str | None, as_json: bool) -> None:
    """What is in a trace, in figures."""
    facts = describe(opened_trace(trace))
    if as_json:
        click.echo(msgspec.json.encode(facts))
        return
    for name in facts.__dataclass_fields__:
        click.echo(f"{name.replace('_', ' '):<20} {_shown(getattr(facts, name))}")


@dataset.command()
@_trace
@_json
def validate(trace: str | None, as_json: bool) -> int:
    """Check everything that can be checked; exit code 1 when something is wrong."""
    path = named_trace(trace)
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
    said = "was finished and holds" if (trace / MANIFEST).is_file() else "recovered"
    counts = recover_trace(trace).counts
    say(
        f"{trace}: {said} {counted(counts.arrivals, 'arrival')} of "
        f"{counted(counts.queries, 'query', 'queries')}, "
        f"{counts.incomplete_queries} of them not finished"
    )


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{n} {key}" for key, n in value.items()) or "none"
    if isinstance(value, float):
        return f"{value:.3f}" if value >= 0.1 else f"{value:.3g}"
    return "n/a" if value is None else str(value)
