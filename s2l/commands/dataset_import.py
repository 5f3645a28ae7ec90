"""``s2l dataset import``"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import click
import msgspec

from s2l import __version__
from s2l.collecting.importing import ImportRequest, import_with
from s2l.collecting.run import Display
from s2l.folders import TRACES, new_folder
from s2l.parameters import TOKENIZER
from s2l.progress import percent_bar, say
from s2l.scale import Scale, scale_options
from s2l.workloads.formats.base import ImportOptions
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.importing import Provenance, import_trace
from s2l.workloads.formats.registry import FORMATS
from s2l.workloads.formats.stream2llm_anns import ARRIVALS
from s2l.workloads.manifest import Manifest
from s2l.workloads.plural import counted
from s2l.workloads.synth.text import text_maker
from s2l.workloads.token_counter import token_counter

_SHOWN = 20


@click.command(name="import")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--format", "fmt", type=click.Choice(list(FORMATS)), required=True)
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the trace.")
@click.option("--name", help="Name of the dataset.  [default: that of the source]")
@click.option("--licence", default="unknown", show_default=True, help="As its owner gives it.")
@click.option("--strict", is_flag=True, help="Stop at the first bad row.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--tokenizer", type=TOKENIZER, help="Whose tokens the lengths are (see synth).")
@click.option(
    "--arrival",
    type=click.Choice(ARRIVALS),
    default="end",
    show_default=True,
    help="Where in its window a vector search's update arrives.",
)
@click.option(
    "--delays", type=click.Path(path_type=Path), help="File of seconds before each query."
)
@click.option(
    "--passage-gap-ms",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="Time between passages, for formats that do not say when they came.",
)
@scale_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def import_dataset(
    source: Path,
    fmt: str,
    out: Path | None,
    name: str | None,
    licence: str,
    strict: bool,
    seed: int,
    tokenizer: Path | None,
    arrival: str,
    delays: Path | None,
    passage_gap_ms: float,
    workers: int,
    ray_address: str | None,
    as_json: bool,
) -> None:
    """Import a trace of another kind; texts that it lacks are made, as long as it says."""
    path = out or new_folder(TRACES, fmt)
    provenance = Provenance(name or source.resolve().name, __version__, licence, seed)
    options = ImportOptions(arrival, delays, round(passage_gap_ms * 1000))
    request = ImportRequest(source, fmt, provenance, options, tokenizer, strict)
    scale = Scale(workers, ray_address)
    with percent_bar("reading") as tell:
        if scale.is_one:
            manifest, log = _import(request, path, tell)
        else:
            manifest, log = asyncio.run(import_with(scale, request, path, _shown_by(tell)))
    _conclude(path, manifest, log, as_json)


def _import(
    request: ImportRequest, path: Path, tell: Callable[[int, int], None]
) -> tuple[Manifest, ImportLog]:
    texts = text_maker(request.provenance.seed, token_counter(request.tokenizer))
    log = ImportLog(strict=request.strict, tell=tell)
    args = (request.source, FORMATS[request.format], path, texts, request.provenance)
    return import_trace(*args, request.options, log), log


def _shown_by(tell: Callable[[int, int], None]) -> Display:
    return lambda capture: lambda state: tell(state.done, state.total)


def _conclude(path: Path, manifest: Manifest, log: ImportLog, as_json: bool) -> None:
    for bad in log.listed[:_SHOWN]:
        say(f"left out: {bad}")
    if log.bad > _SHOWN:
        say(f"left out: {log.bad - min(_SHOWN, len(log.listed))} more")
    for what, n in log.warnings.items():
        say(f"warning: {n:,} {what}")
    counts = manifest.counts
    say(
        f"{path}: {log.rows:,} rows read, {log.good:,} used, {log.bad:,} left out; "
        f"{counted(counts.queries, 'query', 'queries')}, {counted(counts.arrivals, 'arrival')}, "
        f"{counted(counts.documents, 'document')}"
    )
    if as_json:
        facts = {
            "trace": str(path),
            "files": log.files,
            "rows": log.rows,
            "used": log.good,
            "left_out": log.bad,
            "bad_files": log.bad_files,
            "side_rows": log.side_rows,
            "bad": log.listed,
            "warnings": dict(log.warnings),
            "counts": counts,
        }
        click.echo(msgspec.json.encode(facts))
