"""The journal of a run: what its tables will hold, kept on disk while the run goes on.

A Parquet file is nothing before its end is written, so each batch of rows is appended to a log of
its table, too: what a killed run had written can be read back. A log is a schema and record
batches as Arrow serialises them, each after its length and its CRC-32, as a power loss may leave
zeros where there was data. The journal goes once the run is whole.
"""

import os
import shutil
import struct
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
import pyarrow as pa
import pyarrow.ipc

from s2l.replayer.planned_passes import PlannedPasses
from s2l.replayer.run import CHUNK_SCHEMA, CLIENT_SCHEMA, REQUEST_SCHEMA, RunError, RunInfo
from s2l.workloads.durable import sync_folder, write_durably

JOURNAL: Final = "journal"
BEGUN: Final = "begun.json"
PASSES: Final = "passes.msgpack"
JOURNALED: Final[dict[str, pa.Schema]] = {
    "requests": REQUEST_SCHEMA,
    "chunks": CHUNK_SCHEMA,
    "client": CLIENT_SCHEMA,
}
_HEAD: Final = struct.Struct("<II")
SYNC_S: Final = 1.0
"""What is appended later than this after the last sync is synced with all before it: what a power
loss takes."""


class RunJournal:
    """The journal of a run that goes on."""

    def __init__(self, run: Path, begun: RunInfo, planned: PlannedPasses) -> None:
        """Begin it; ``begun.json`` comes last, and where it is, there is something to recover.

        Raises:
            OSError: the disk does not take it.
        """
        self._folder = run / JOURNAL
        self._files: dict[str, int] = {}
        self._synced_s = time.monotonic()
        shutil.rmtree(self._folder, ignore_errors=True)  # one that was never begun
        self._folder.mkdir()
        try:
            write_durably(self._folder / PASSES, msgspec.msgpack.encode(planned))
            for name, schema in JOURNALED.items():
                self._files[name] = descriptor = _new(log_path(run, name))
                _write(descriptor, schema.serialize())
            self._sync()
            write_durably(self._folder / BEGUN, msgspec.json.encode(begun))
            sync_folder(run)
        except OSError:
            self.discard()
            raise

    def append(self, batches: Mapping[str, pa.RecordBatch]) -> None:
        """Give batches to the system; from then on they outlive this process. Raises OSError."""
        for name, batch in batches.items():
            _write(self._files[name], batch.serialize())
        if time.monotonic() - self._synced_s > SYNC_S:
            self._sync()

    def discard(self) -> None:
        """Leave nothing of it. Its room is free when this returns."""
        self.close()
        remove_journal(self._folder.parent)

    def close(self) -> None:
        """Nothing more is appended; what was stays."""
        files, self._files = self._files, {}
        for descriptor in files.values():
            os.close(descriptor)

    def _sync(self) -> None:
        for descriptor in self._files.values():
            os.fdatasync(descriptor)
        self._synced_s = time.monotonic()


def log_path(run: Path, name: str) -> Path:
    """Where the rows of a table are kept."""
    return run / JOURNAL / f"{name}.rows"


def has_journal(run: Path) -> bool:
    """Whether a run began there that is under way, or was killed."""
    return (run / JOURNAL / BEGUN).is_file()


def remove_journal(run: Path) -> None:
    """Remove it; half of a journal is never taken for one. Raises OSError."""
    (run / JOURNAL / BEGUN).unlink(missing_ok=True)
    if (run / JOURNAL).is_dir():
        shutil.rmtree(run / JOURNAL)


def read_begun(run: Path) -> tuple[RunInfo, PlannedPasses]:
    """What the run began with.

    Raises:
        RunError: it is damaged, or of another version.
    """
    folder = run / JOURNAL
    try:
        info = msgspec.json.decode((folder / BEGUN).read_bytes(), type=RunInfo)
        planned = msgspec.msgpack.decode((folder / PASSES).read_bytes(), type=PlannedPasses)
    except (OSError, msgspec.MsgspecError) as error:
        raise RunError(f"{folder}: damaged, or of another version: {error}") from None
    return info, planned


def read_batches(run: Path, name: str) -> Iterator[pa.RecordBatch]:
    """The sound part of what was appended for a table, batch by batch.

    Raises:
        RunError: it has other columns than this version writes.
    """
    schema = JOURNALED[name]
    with log_path(run, name).open("rb") as file:
        blobs = _blobs(file)
        first = next(blobs, None)
        if first is not None and not pa.ipc.read_schema(pa.py_buffer(first)).equals(schema):
            raise RunError(f"{run}: its journal was written by another version of s2l; use that")
        for blob in blobs:
            yield pa.ipc.read_record_batch(pa.py_buffer(blob), schema)


def _blobs(file: BinaryIO) -> Iterator[bytes]:
    """What was written whole, up to the first that was not."""
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        length, checksum = _HEAD.unpack(head)
        blob = file.read(length)
        if not length or len(blob) < length or zlib.crc32(blob) != checksum:
            return
        yield blob


def _new(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)


def _write(descriptor: int, data: pa.Buffer) -> None:
    left = memoryview(b"".join((_HEAD.pack(data.size, zlib.crc32(data)), data)))
    while left:
        left = left[os.write(descriptor, left) :]
