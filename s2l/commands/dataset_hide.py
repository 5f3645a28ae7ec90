"""``s2l dataset hide``"""

from pathlib import Path

import click

from s2l.folders import TRACES, new_folder
from s2l.named_trace import opened_trace
from s2l.progress import bar, say
from s2l.workloads.plural import counted
from s2l.workloads.privacy import HIDE
from s2l.workloads.scrubbing.concealing import conceal


@click.command(name="hide")
@click.argument("trace", required=False)
@click.option(
    "--privacy",
    type=click.Choice(list(HIDE)),
    required=True,
    help="urls hides the texts, hashed their addresses and titles as well.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the new trace.")
def hide_texts(trace: str | None, privacy: str, out: Path | None) -> None:
    """Write a copy of TRACE that shows less; lengths, hashes and times stay."""
    source = opened_trace(trace)
    path = out or new_folder(TRACES, "hidden")
    with bar("documents", source.manifest.counts.documents) as shown:
        manifest = conceal(source, path, privacy, lambda done: shown.advance())
    say(f"{path}: {counted(manifest.counts.documents, 'document')}, privacy {privacy}")
