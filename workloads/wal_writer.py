"""Appending to the write-ahead log: all of a flush is there, or none of it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from s2l.workloads.durable import sync_folder, write_durably
from s2l.workloads.query import Query
from s2l.workloads.schema import Row
from s2l.workloads.wal import (
    COMMITS,
    FORMAT_OF,
    HEADER,
    LOGGED,
    RESUMED,
    WAL,
    Commit,
    Header,
    commits_end,
    lock,
    stream_path,
)
from s2l.workloads.wal_queue import write_queue
from s2l.workloads.wal_reader import last_sound_commit


class WalWriter:
    """The open log of one capture; holds its lock."""

    def __init__(self, folder: Path, held: int, commit: Commit, end: int) -> None:
        """Open the streams for writing after ``commit``, whose own line ends at byte ``end``.

        ``held`` is the lock, which is given up here if this fails.

        Raises:
            OSError: the folder cannot be written.
        """
        self._lock = held
        self._files: dict[str, int] = {}
        self._commits = -1
        self.commit, self._commits_end = commit, end
        try:
            self._commits = _open(folder / WAL / COMMITS, end)
            for name, length in commit.ends().items():
                self._files[name] = _open(stream_path(folder, name), length)
            sync_folder(folder / WAL)
            sync_folder(folder)
            if end == 0:
                self._write({name: schema.serialize() for name, schema in LOGGED.items()})
        except BaseException:
            self.close()
            raise

    @classmethod
    def begin(cls, folder: Path, header: Header, queue: Sequence[Query] = ()) -> "WalWriter":
        """Start an empty log in an existing folder, with the questions to be asked.

        The header comes after them: where it is, they are.

        Raises:
            OSError: the folder cannot be written.
        """
        encoded = msgspec.json.encode(header)  # options that are no JSON fail before any file
        (folder / WAL).mkdir()
        if queue:
            write_queue(folder, queue)
        write_durably(folder / WAL / HEADER, encoded)
        return cls(folder, lock(folder), Commit(0, 0, 0), 0)

    @classmethod
    def reopen(cls, folder: Path) -> "WalWriter":
        """Go on with the log of a capture that was stopped, after its last sound commit.

        Raises:
            TraceError: another process is still capturing into it, or it was tampered with.
            OSError: the folder cannot be written.
        """
        held = lock(folder)
        try:
            commit = last_sound_commit(folder)
            write_durably(folder / WAL / RESUMED, b"")
            end = commits_end(folder, commit) if commit != Commit(0, 0, 0) else 0
        except BaseException:
            os.close(held)
            raise
        return cls(folder, held, commit, end)

    def append(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """Append rows by table, and return when they are on disk.

        Raises:
            OSError: they are not; the log is as it was, and the same rows may be appended again.
        """
        blobs = {
            name: FORMAT_OF[name].batch(some, LOGGED[name]).serialize()
            for name, some in rows.items()
            if some
        }
        if blobs:
            self._write(blobs)

    def _write(self, blobs: Mapping[str, Any]) -> None:
        # Nothing counts before its commit is on disk: what a failed write left after the last
        # commit is never read, and the next write goes over it.
        ends = self.commit.ends()
        for name, blob in blobs.items():
            ends[name] = _write_at(self._files[name], blob, ends[name])
        for name in blobs:
            os.fsync(self._files[name])
        commit = Commit(**ends)
        line = msgspec.json.encode(commit) + b"\n"
        commits_end = _write_at(self._commits, line, self._commits_end)
        os.fsync(self._commits)
        self.commit, self._commits_end = commit, commits_end

    def close(self) -> None:
        """Close the files and give up the lock. Closing twice is harmless."""
        for descriptor in (*self._files.values(), self._commits, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._files, self._commits, self._lock = {}, -1, -1


def _open(path: Path, length: int) -> int:
    """The file, made if it is not there, without what lies after ``length``."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        # A shorter commit written over a longer one would leave whole, stale ones after it.
        os.ftruncate(descriptor, length)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _write_at(descriptor: int, blob: Any, offset: int) -> int:
    """Write all of ``blob`` and return where it ends."""
    left = memoryview(blob).cast("B")
    while left:
        written = os.pwrite(descriptor, left, offset)
        left, offset = left[written:], offset + written
    return offset
