"""The parts of a scaled capture: where they are kept, how they are fetched, checked, recovered."""

import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path
from typing import Final

from s2l.collecting.worker import TOKEN, Part
from s2l.progress import say
from s2l.replayer.scale_out.crew import Crew
from s2l.workloads.errors import NotATrace, TraceError
from s2l.workloads.manifest import MANIFEST
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import recover
from s2l.workloads.wal import WAL, read_commits

PIECE_BYTES: Final = 8 << 20
"""How much of a part is fetched at once."""

_GONE_S: Final = 10.0
"""How long a process that has died may take to give up its files."""
_LOOK_S: Final = 0.05


@contextmanager
def parts_folder(path: Path, *, keep: bool = True) -> Iterator[tuple[Path, str]]:
    """A folder for the parts of the trace ``path``, next to it, and the secret in it.

    It is removed in the end; with ``keep``, not where there are parts in it and the block fails.

    Raises:
        TraceError: there is one already.
    """
    folder = path.with_name(f"{path.name}.parts").absolute()
    if folder.exists():
        raise TraceError(
            f"{folder}: holds parts of a capture that failed; recover them with s2l dataset "
            "recover, or remove it"
        )
    folder.mkdir(parents=True)
    try:
        (folder / TOKEN).write_text(token := secrets.token_hex())
        yield folder, token
    except BaseException:
        if keep and any(map(_has_rows, folder.iterdir())):
            say(f"the parts that were captured are kept: {folder}")
            raise
        shutil.rmtree(folder)
        raise
    shutil.rmtree(folder)


def _has_rows(part: Path) -> bool:
    """Whether anything was captured into it; the first commit is that of an empty log."""
    return (part / MANIFEST).is_file() or len(read_commits(part)) > 1


def fetch_part(crew: Crew, worker: int, path: Path, *, is_here: bool) -> Trace | None:
    """The finished part of a worker, at ``path``; None where it has captured nothing.

    Raises:
        WorkerLost: it died meanwhile.
        NotATrace: what came is not what it wrote.
    """
    part: Part | None = crew.call(worker, "part")
    if part is not None and not is_here:
        for name, size in part.files.items():
            _fetch_file(crew, worker, name, size, path)
    trace = None
    if part is not None:
        trace = _checked(path)
        if trace.sha256 != part.sha256:
            raise NotATrace(f"{path / MANIFEST}: is not the one that {crew.name(worker)} wrote")
    crew.call(worker, "discard")
    return trace


def recovered_part(path: Path) -> Trace | None:
    """What a worker that died has left in a folder of this machine, if anything."""
    if not (path / MANIFEST).is_file() and not (path / WAL).is_dir():
        return None
    until_s = time.monotonic() + _GONE_S
    while True:
        try:
            recover(path)
            return _checked(path)
        except NotATrace:
            return None
        except TraceError:
            if time.monotonic() > until_s:
                raise
            time.sleep(_LOOK_S)  # its lock goes when the system has buried it


def _fetch_file(crew: Crew, worker: int, name: str, size: int, path: Path) -> None:
    target = path / name
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        for offset in range(0, size, PIECE_BYTES):
            file.write(crew.call(worker, "read", name, offset, PIECE_BYTES))


def _checked(path: Path) -> Trace:
    trace = Trace.open(path)
    for entry in trace.manifest.files:
        with (path / entry.path).open("rb") as file:
            if file_digest(file, "sha256").hexdigest() != entry.sha256:
                raise NotATrace(f"{path / entry.path}: its sha256 is not the manifest's")
    return trace
