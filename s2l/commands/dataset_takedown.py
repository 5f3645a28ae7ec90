"""``s2l dataset takedown``"""

from pathlib import Path

import click

from s2l.folders import TRACES, new_folder
from s2l.named_trace import opened_trace
from s2l.progress import bar, say
from s2l.workloads.scrubbing.changes import change_in_words, changes_of
from s2l.workloads.scrubbing.takedown import TakedownList, take_down


@click.command(name="takedown")
@click.argument("patterns", type=click.Path(path_type=Path))
@click.argument("trace", required=False)
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the new trace.")
def take_down_documents(patterns: Path, trace: str | None, out: Path | None) -> None:
    """Write a copy of TRACE without the documents whose addresses PATTERNS names.

    PATTERNS is a file with one a line: a host (example.org, its subdomains included), a host and
    the beginning of a path (example.org/blog/), or a whole address in which * stands for
    anything. The card of the copy says how many were dropped.
    """
    listed = TakedownList.read(patterns)
    source = opened_trace(trace)
    path = out or new_folder(TRACES, "takedown")
    with bar("documents", source.manifest.counts.documents) as shown:
        manifest = take_down(source, path, listed, lambda done: shown.advance())
    say(f"{path}: {change_in_words(changes_of(manifest)[-1])}")
