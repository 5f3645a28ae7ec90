"""Writes a run folder while the run goes on, in a thread of its own; ``run.json`` comes last.

The event loop only puts finished records into a queue. A thread makes rows of them, counts them
for the verdict, and writes them, so that a run of any length takes little memory.
"""

import errno
import fcntl
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from s2l.replayer.monitor import ClientSample
from s2l.replayer.record import RequestRecord
from s2l.replayer.rows import chunk_rows, client_rows, query_rows, request_rows
from s2l.replayer.run import (
    CHUNK_SCHEMA,
    CLIENT_SCHEMA,
    QUERY_SCHEMA,
    REQUEST_SCHEMA,
    SERVER_SCHEMA,
    RunError,
    RunInfo,
)
from s2l.replayer.table_writer import TableWriter
from s2l.workloads.durable import durable_file
from s2l.workloads.query import Query

BATCH_ROWS: Final = 64
"""So few at a time that making rows of them never keeps the event loop waiting."""
RESERVE_BYTES: Final = 4 * 2**20
"""Room kept on the disk for the end of a run that has filled it."""
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_SWITCH_S: Final = 1e-4
"""How long the thread may keep the interpreter from the event loop; Python's default is 5 ms. The
thread's priority is not lowered: while it holds the interpreter, the event loop waits for it."""


_Finished = tuple[list[RequestRecord], list[ClientSample]]


class RunNotWritten(RunError):
    """The disk did not take the run."""


class RunWriter:
    """A run folder being written.

    ``on_record`` and ``on_sample`` are called in the writer's thread for all that was finished.
    ``on_disk_full`` is called there, once, when the disk is full: what has been measured still
    fits, as room was reserved, and the run is to end.
    """

    def __init__(
        self,
        path: Path,
        *,
        on_record: Callable[[RequestRecord], None] = lambda _: None,
        on_sample: Callable[[ClientSample], None] = lambda _: None,
        on_disk_full: Callable[[], None] = lambda: None,
    ) -> None:
        """Make the folder.

        Raises:
            RunNotWritten: the disk does not take it.
        """
        self.path = path
        self.disk_full: str | None = None
        """What the disk said when it was full."""
        self._on_record, self._on_sample = on_record, on_sample
        self._on_disk_full = on_disk_full
        self._failure: Exception | None = None
        self._queue: queue.SimpleQueue[_Finished | None] = queue.SimpleQueue()
        self._pending: list[RequestRecord] = []
        self._reserve = path / ".reserve"
        self._held = -1
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._held = _reserve(self._reserve)
            self._requests = TableWriter(path / "requests.parquet", REQUEST_SCHEMA, self._make_room)
            self._chunks = TableWriter(path / "chunks.parquet", CHUNK_SCHEMA, self._make_room)
            self._client = TableWriter(path / "client.parquet", CLIENT_SCHEMA, self._make_room)
        except OSError as error:
            self._give_up_reserve()
            raise self._not_written(error) from error
        self._thread = threading.Thread(target=self._work, name="s2l-run-writer", daemon=True)
        self._switch_s = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_S)
        self._thread.start()

    def put(self, records: list[RequestRecord], samples: list[ClientSample]) -> None:
        """Records that are complete, and samples; the caller keeps no hand on the lists."""
        self._queue.put((records, samples))

    def finish(
        self,
        unsent: Iterable[RequestRecord],
        queries: Iterable[Query],
        server: Iterable[pa.RecordBatch] | None = None,
    ) -> None:
        """Write what is left, the requests that were never sent, and the end of each table.
        ``server`` are batches of ``SERVER_SCHEMA``, None where nobody asked.

        Raises:
            RunNotWritten: the disk does not take it.
        """
        self._stop_thread()
        try:
            if self._failure is not None:
                raise self._failure
            rest = iter(unsent)
            while part := list(islice(rest, BATCH_ROWS)):
                self._pending += part
                self._write_pending()
            self._write_pending()
            for table in (self._requests, self._chunks, self._client):
                table.finish()
            self._write_table("queries.parquet", QUERY_SCHEMA, [query_rows(queries)])
            if server is not None:
                self._write_table("server.parquet", SERVER_SCHEMA, server)
        except OSError as error:
            raise self._not_written(error) from error

    def write_info(self, info: RunInfo) -> None:
        """Write ``run.json``: from then on it is a run. Raises RunNotWritten."""
        try:
            data = msgspec.json.format(msgspec.json.encode(info), indent=2)
            self._give_up_reserve()
            with durable_file(self.path / "run.json") as file:
                file.write(data)
        except OSError as error:
            raise self._not_written(error) from error

    def _write_table(self, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        table = TableWriter(self.path / name, schema, self._make_room)
        for batch in batches:
            table.add(batch)
        table.finish()

    def _stop_thread(self) -> None:
        self._queue.put(None)
        self._thread.join()
        sys.setswitchinterval(self._switch_s)

    def _work(self) -> None:
        while (batch := self._queue.get()) is not None:
            try:
                self._take(*batch)
            except Exception as error:
                if self._failure is None:
                    self._failure = error
                    self._on_disk_full()

    def _take(self, records: list[RequestRecord], samples: list[ClientSample]) -> None:
        for record in records:
            self._on_record(record)
        for sample in samples:
            self._on_sample(sample)
        if self._failure is not None:
            return
        self._pending += records
        if len(self._pending) >= BATCH_ROWS:
            self._write_pending()
        if samples:
            self._client.add(client_rows(samples))

    def _write_pending(self) -> None:
        records, self._pending = self._pending, []
        for first in range(0, len(records), BATCH_ROWS):
            part = records[first : first + BATCH_ROWS]
            self._requests.add(request_rows(part))
            self._chunks.add(chunk_rows(part))

    def _make_room(self, error: OSError) -> bool:
        if error.errno not in _FULL or not self._reserve.exists():
            return False
        self._give_up_reserve()
        self.disk_full = error.strerror or str(error)
        self._on_disk_full()
        return True

    def _give_up_reserve(self) -> None:
        """Its room is free only once it is neither named nor open."""
        held, self._held = self._held, -1
        if held >= 0:
            self._reserve.unlink(missing_ok=True)
            os.close(held)

    def _not_written(self, error: OSError) -> RunNotWritten:
        return RunNotWritten(f"{self.path}: cannot write the run: {error.strerror or error}")


def _reserve(path: Path) -> int:
    """Take room on the disk, and the folder for this process as long as the descriptor is open.

    Raises:
        OSError: there is no room, or another process writes there.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
    except BlockingIOError:
        os.close(descriptor)
        raise OSError(errno.EBUSY, "another replay writes its run there") from None
    except OSError:
        os.close(descriptor)
        path.unlink()
        raise
    return descriptor
