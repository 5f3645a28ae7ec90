"""Reading the write-ahead log back: what of it is sound, and its rows in any order."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from s2l.workloads.errors import NotATrace
from s2l.workloads.wal import LOGGED, Commit, read_commits, stream_path

_WINDOW: Final = 32 << 20

Indices = npt.NDArray[np.int64]


class LogBatch(NamedTuple):
    """A record batch of a stream, and the bytes from where to where it lies."""

    start: int
    end: int
    rows: pa.RecordBatch


def log_batches(path: Path, end: int) -> Iterator[LogBatch]:
    """The batches of one stream up to byte ``end``.

    The file is mapped, and mapped anew every ``_WINDOW`` bytes: pages of a map that were looked at
    count as this process's memory until the map goes.

    Raises:
        OSError, pa.ArrowException: the stream is torn or damaged at the next batch.
    """
    start = 0
    while start < end:
        with pa.memory_map(str(path)) as source:
            schema = pa.ipc.read_schema(source)
            source.seek(max(start, source.tell()))
            window = min(end, source.tell() + _WINDOW)
            while (start := source.tell()) < window:
                rows = pa.ipc.read_record_batch(pa.ipc.read_message(source), schema)
                yield LogBatch(start, source.tell(), rows)


def last_sound_commit(folder: Path) -> Commit:
    """The newest commit of which every stream still holds all, whole and readable.

    Raises:
        NotATrace: there is data and no commit for it: the log was tampered with.
    """
    commits = read_commits(folder)
    newest = commits[-1] if commits else Commit(0, 0, 0)
    sound = {name: _sound_end(stream_path(folder, name), n) for name, n in newest.ends().items()}
    fitting = [commit for commit in commits if commit.fits(sound)]
    if fitting:
        return fitting[-1]
    if any(_size(stream_path(folder, name)) > len(s.serialize()) for name, s in LOGGED.items()):
        raise NotATrace(f"{folder}: damaged: the capture's log has rows but no readable commit")
    return Commit(0, 0, 0)


def _sound_end(path: Path, committed: int) -> int:
    """How far a stream can be read, at most up to its committed length."""
    end = min(committed, _size(path))
    sound = 0
    try:
        for batch in log_batches(path, end):
            if batch.end > end:
                return sound  # the commit is of a write that did not come to its end
            batch.rows.validate(full=True)
            sound = batch.end
    except (OSError, pa.ArrowException):
        return sound
    return end


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


class LoggedTable:
    """One table of the log: some columns of it as numbers, and rows in any order.

    It keeps two integers per batch; the rows stay on disk.
    """

    def __init__(self, folder: Path, name: str, commit: Commit) -> None:
        self.bytes = commit.ends()[name]
        self.schema = LOGGED[name]
        self._path = stream_path(folder, name)
        starts, sizes = [], []
        for batch in log_batches(self._path, self.bytes):
            starts.append(batch.start)
            sizes.append(batch.rows.num_rows)
        self._starts = np.array(starts, dtype=np.int64)
        self._first_rows = np.cumsum([0, *sizes], dtype=np.int64)

    def __len__(self) -> int:
        return int(self._first_rows[-1])

    def integers(self, column: str) -> Indices:
        """A column of integers, whole."""
        found = np.empty(len(self), dtype=np.int64)
        at = 0
        for _, _, rows in log_batches(self._path, self.bytes):
            found[at : at + rows.num_rows] = rows.column(column).to_numpy()
            at += rows.num_rows
        return found

    def value_counts(self, column: str, some: Indices) -> dict[str, int]:
        """How often each text occurs in these rows of a column, in the order of the texts."""
        counts: dict[str, int] = {}
        wanted = np.zeros(len(self), dtype=np.bool_)
        wanted[some] = True
        at = 0
        for _, _, rows in log_batches(self._path, self.bytes):
            texts = rows.column(column).filter(pa.array(wanted[at : at + rows.num_rows]))
            for pair in pc.value_counts(texts).to_pylist():
                counts[pair["values"]] = counts.get(pair["values"], 0) + pair["counts"]
            at += rows.num_rows
        return dict(sorted(counts.items()))

    def take(self, rows: Indices) -> pa.Table:
        """The rows with these numbers, in this order; touches only their batches."""
        batch_of = np.searchsorted(self._first_rows, rows, side="right") - 1
        by_batch = np.argsort(batch_of, kind="stable")
        which, firsts = np.unique(batch_of[by_batch], return_index=True)
        pieces = []
        with pa.memory_map(str(self._path)) as source:
            for number, places in zip(which, np.split(by_batch, firsts[1:]), strict=True):
                batch = self._batch(source, int(number))
                pieces.append(batch.take(pa.array(rows[places] - self._first_rows[number])))
        back = np.empty_like(by_batch)
        back[by_batch] = np.arange(len(rows))
        return pa.Table.from_batches(pieces, self.schema).combine_chunks().take(pa.array(back))

    def _batch(self, source: Any, number: int) -> pa.RecordBatch:
        source.seek(int(self._starts[number]))
        return pa.ipc.read_record_batch(pa.ipc.read_message(source), self.schema)
