"""A trace made ready to be shared: its tables as they are, with card, picture and metadata."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from s2l.workloads.durable import write_durably
from s2l.workloads.errors import TraceError, disk_error
from s2l.workloads.manifest import MANIFEST, FileEntry
from s2l.workloads.provenance import document_rights
from s2l.workloads.sharing.croissant import croissant
from s2l.workloads.sharing.file_names import CARD, CROISSANT, EXTRAS, PLOT, is_table
from s2l.workloads.sharing.shape import shape_of
from s2l.workloads.sharing.shape_plot import shape_svg
from s2l.workloads.sharing.shared_card import shared_card
from s2l.workloads.token_counter import TokenCounter, WordCounter
from s2l.workloads.trace import Trace
from s2l.workloads.validation import validate


def is_packaged(trace: Trace) -> bool:
    """Whether the manifest lists the card, so that it is checked like everything else."""
    return any(entry.path == CARD for entry in trace.manifest.files)


def package(
    trace: Trace, path: Path, *, counter: TokenCounter | None = None, repo: str | None = None
) -> Trace:
    """Write the trace, ready to be shared, to the new folder ``path``.

    The manifest then lists the card, its picture and the metadata, too. A packaged trace stays
    the same, byte for byte. ``repo`` is its name on the Hub, for the card.

    Raises:
        TraceError: the trace is not valid, something is at ``path``, or it cannot be written.
    """
    if problems := validate(trace.path):
        raise TraceError(f"{trace.path}: not valid, so not to be shared: {problems[0]}")
    extras = {} if is_packaged(trace) else _extras(trace, counter or WordCounter(), repo)
    aside = path.with_name(f".{path.name}.partial")
    try:
        if path.exists():
            raise TraceError(f"{path}: is there already; name a new folder")
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        _fill(trace, aside, extras)
        os.rename(aside, path)
    except OSError as error:
        raise disk_error(path, error) from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return Trace.open(path)


@contextmanager
def packaged(
    trace: Trace, *, counter: TokenCounter | None = None, repo: str | None = None
) -> Iterator[Trace]:
    """The trace ready to be shared, in a folder that goes when the block ends."""
    with TemporaryDirectory(prefix="s2l-pack-") as folder:
        yield package(trace, Path(folder) / "trace", counter=counter, repo=repo)


def _extras(trace: Trace, counter: TokenCounter, repo: str | None) -> dict[str, bytes]:
    shape = shape_of(trace, counter)
    picture = shape_svg(shape)
    rights = document_rights(trace.documents())
    card = shared_card(trace.manifest, shape, rights, plot=picture is not None, repo=repo)
    found = {CARD: card.encode(), CROISSANT: croissant(trace.manifest)}
    return found if picture is None else {**found, PLOT: picture.encode()}


def _fill(trace: Trace, aside: Path, extras: dict[str, bytes]) -> None:
    kept = [
        e for e in trace.manifest.files if is_table(e.path) or (not extras and e.path in EXTRAS)
    ]
    for entry in kept:
        (aside / entry.path).parent.mkdir(exist_ok=True)
        shutil.copyfile(trace.path / entry.path, aside / entry.path)
    for name, data in extras.items():
        write_durably(aside / name, data)
    more = [FileEntry(n, 0, len(d), sha256(d).hexdigest()) for n, d in sorted(extras.items())]
    if extras:
        manifest = replace(trace.manifest, files=[*kept, *more])
        write_durably(aside / MANIFEST, manifest.encode())
    else:
        shutil.copyfile(trace.path / MANIFEST, aside / MANIFEST)
