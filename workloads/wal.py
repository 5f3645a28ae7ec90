"""The write-ahead log of a capture: its layout, its header and its commits.

``wal/`` holds one Arrow IPC stream per table, only ever appended to, and ``commits.jsonl``. A
commit is a line with the lengths of the streams; it is written when they are on disk up to there.
So what the last commit names is there whatever stopped the capture, and what lies after it is
the rest of a write that did not end.
"""

import fcntl
import os
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa

from s2l.workloads.errors import NotATrace, TraceError
from s2l.workloads.manifest import Collector
from s2l.workloads.schema import ARRIVALS, DOCUMENTS, QUERIES, RowFormat

WAL: Final = "wal"
HEADER: Final = "header.json"
COMMITS: Final = "commits.jsonl"
RESUMED: Final = "resumed"
"""A file that is there when the capture was resumed: the log may then hold queries twice."""

QUERY_ROW: Final = "query_row"
"""The extra last column of logged arrivals: which query of the log, counted from 0."""

LOGGED: Final[dict[str, pa.Schema]] = {
    QUERIES.name: QUERIES.schema,
    DOCUMENTS.name: DOCUMENTS.schema,
    ARRIVALS.name: ARRIVALS.schema.append(pa.field(QUERY_ROW, pa.int32(), nullable=False)),
}
FORMAT_OF: Final[dict[str, RowFormat[Any]]] = {f.name: f for f in (QUERIES, DOCUMENTS, ARRIVALS)}


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What the manifest will say and only the start of the capture knows."""

    name: str
    created_utc: str
    collector: Collector
    clock: str
    licence: str
    privacy: str


class Commit(msgspec.Struct, frozen=True, array_like=True):
    """The streams' lengths in bytes at a moment when all of that was on disk."""

    queries: int
    documents: int
    arrivals: int

    def ends(self) -> dict[str, int]:
        """The lengths by name of the stream."""
        return msgspec.structs.asdict(self)

    def fits(self, ends: dict[str, int]) -> bool:
        """Whether streams that are sound up to ``ends`` hold all of it."""
        return all(length <= ends[name] for name, length in self.ends().items())


def stream_path(folder: Path, name: str) -> Path:
    """The log of one table of the trace in ``folder``."""
    return folder / WAL / f"{name}.arrows"


def read_header(folder: Path) -> Header:
    """The header of the log in ``folder``.

    Raises:
        NotATrace: there is no log, it is damaged, or the capture never began.
    """
    file = folder / WAL / HEADER
    try:
        return msgspec.json.decode(file.read_bytes(), type=Header)
    except FileNotFoundError:
        raise NotATrace(f"{folder}: holds no capture to recover (no {WAL}/{HEADER})") from None
    except msgspec.MsgspecError as error:
        raise NotATrace(f"{file}: damaged: {error}") from None


def read_commits(folder: Path) -> list[Commit]:
    """All commits that were written whole, the newest last."""
    file = folder / WAL / COMMITS
    commits: list[Commit] = []
    for line in file.read_bytes().splitlines(keepends=True) if file.exists() else []:
        try:
            commit = msgspec.json.decode(line, type=Commit)
        except msgspec.MsgspecError:
            break  # torn: the capture stopped in the middle of this line
        if not line.endswith(b"\n"):
            break
        commits.append(commit)
    return commits


def commits_end(folder: Path, commit: Commit) -> int:
    """Where the line of ``commit``, one of ``read_commits``, ends in its file; 0 for no commit."""
    end = 0
    for line in (folder / WAL / COMMITS).read_bytes().splitlines(keepends=True):
        end += len(line)
        if msgspec.json.decode(line, type=Commit) == commit:
            return end
    return 0


def lock(folder: Path) -> int:
    """Take the log for this process until it ends or the returned descriptor is closed.

    Raises:
        TraceError: another process is still capturing into it.
    """
    descriptor = os.open(folder / WAL / HEADER, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise TraceError(f"{folder}: still being written; stop that capture first") from None
    return descriptor
