"""Appending to the write-ahead log: all of a flush is there, or none of it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from s2l.workloads.durable import sync_folder, write_durably
from s2l.workloads.schema import Row
from s2l.workloads.wal import (
    COMMITS,
    FORMAT_OF,
    HEADER,
    LOGGED,
    WAL,
    Commit,
    Header,
    lock,
    stream_path,
)


class WalWriter:
    """The open log of one capture; holds its lock."""

    def __init__(self, folder: Path, header: Header) -> None:
        """Start an empty log in an existing folder.

        Raises:
            OSError: the folder cannot be written.
        """
        encoded = msgspec.json.encode(header)  # options that are no JSON fail before any file
        (folder / WAL).mkdir()
        write_durably(folder / WAL / HEADER, encoded)
        self._lock = lock(folder)
        self._files = {name: _create(stream_path(folder, name)) for name in LOGGED}
        self._commits = _create(folder / WAL / COMMITS)
        self._commits_end = 0
        sync_folder(folder / WAL)
        sync_folder(folder)
        self.commit = Commit(0, 0, 0)
        self._write({name: schema.serialize() for name, schema in LOGGED.items()})

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


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)


def _write_at(descriptor: int, blob: Any, offset: int) -> int:
    """Write all of ``blob`` and return where it ends."""
    left = memoryview(blob).cast("B")
    while left:
        written = os.pwrite(descriptor, left, offset)
        left, offset = left[written:], offset + written
    return offset
