"""Writes a run folder while the run goes on, in a thread of its own; ``run.json`` comes last.

The event loop only puts finished records into a queue. A thread makes rows of them, counts them
for the verdict, and writes them, so that a run of any length takes little memory. They go into the
run's journal, too, which outlives this process if it is killed.
"""

import errno
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from s2l.replayer.monitor import ClientSample
from s2l.replayer.planned_passes import PlannedPasses
from s2l.replayer.record import RequestRecord
from s2l.replayer.rows import chunk_rows, client_rows, query_rows, request_rows
from s2l.replayer.run import (
    QUERY_SCHEMA,
    SERVER_SCHEMA,
    RunError,
    RunInfo,
)
from s2l.replayer.run_journal import JOURNALED, RunJournal, has_journal
from s2l.replayer.run_lock import RESERVE, lock_run
from s2l.replayer.table_writer import TableWriter
from s2l.workloads.durable import durable_file
from s2l.workloads.query import Query

BATCH_ROWS: Final = 64
"""So few at a time that making rows of them never keeps the event loop waiting."""
HOLD_S: Final = 0.5
"""Rows wait no longer than this for others to be written with them."""
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

    ``begun`` is ``run.json`` as far as it is known; with ``planned`` it is what a run that is
    killed is recovered by.

    ``on_record`` and ``on_sample`` are called in the writer's thread for all that was finished.
    ``on_disk_full`` is called there, once, when the disk is full: what has been measured still
    fits, as room was reserved, and the run is to end.
    """

    def __init__(
        self,
        path: Path,
        begun: RunInfo,
        planned: PlannedPasses,
        queries: Iterable[Query],
        *,
        on_record: Callable[[RequestRecord], None] = lambda _: None,
        on_sample: Callable[[ClientSample], None] = lambda _: None,
        on_disk_full: Callable[[], None] = lambda: None,
    ) -> None:
        """Make the folder, and write the queries.

        Raises:
            RunNotWritten: the disk does not take it, or it holds another run's journal.
        """
        self.path = path
        self.disk_full: str | None = None
        """What the disk said when it was full."""
        self.journal_lost: str | None = None
        """What the disk said when the journal was given up."""
        self._on_record, self._on_sample = on_record, on_sample
        self._on_disk_full = on_disk_full
        self._failure: Exception | None = None
        self._queue: queue.SimpleQueue[_Finished | None] = queue.SimpleQueue()
        self._pending: list[RequestRecord] = []
        self._samples: list[ClientSample] = []
        self._pending_s = 0.0
        self._journal: RunJournal | None = None
        self._reserved = False
        self._held = -1
        self._tables: dict[str, TableWriter] = {}
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._held = _reserve(path)
            self._reserved = True
            for name, schema in JOURNALED.items():
                file = path / f"{name}.parquet"
                self._tables[name] = TableWriter(file, schema, self._make_room)
            self._write_table("queries.parquet", QUERY_SCHEMA, [query_rows(queries)])
            self._journal = RunJournal(path, begun, planned)
        except OSError as error:
            self._leave_nothing()
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
            self._write_pending()
            rest = iter(unsent)
            while part := list(islice(rest, BATCH_ROWS)):
                self._add(_rows(part))
            for table in self._tables.values():
                table.finish()
            if server is not None:
                self._write_table("server.parquet", SERVER_SCHEMA, server)
        except OSError as error:
            self._give_up_folder()
            raise self._not_written(error) from error

    def write_info(self, info: RunInfo) -> None:
        """Write ``run.json``: from then on it is a run, and needs no journal. Raises
        RunNotWritten."""
        try:
            data = msgspec.json.format(msgspec.json.encode(info), indent=2)
            self._give_up_reserve()
            with durable_file(self.path / "run.json") as file:
                file.write(data)
            self._drop_journal()
        except OSError as error:
            raise self._not_written(error) from error
        finally:
            self._give_up_folder()

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
        while (batch := self._next()) is not None:
            try:
                self._take(*batch)
            except Exception as error:
                if self._failure is None:
                    self._failure = error
                    self._on_disk_full()

    def _next(self) -> _Finished | None:
        """What comes next: nothing, when rows have waited long enough."""
        waiting = self._pending or self._samples
        try:
            return self._queue.get(timeout=HOLD_S if waiting else None)
        except queue.Empty:
            return [], []

    def _take(self, records: list[RequestRecord], samples: list[ClientSample]) -> None:
        for record in records:
            self._on_record(record)
        for sample in samples:
            self._on_sample(sample)
        if self._failure is not None:
            return
        now_s = time.monotonic()
        if not self._pending and not self._samples:
            self._pending_s = now_s
        self._pending += records
        self._samples += samples
        if len(self._pending) >= BATCH_ROWS or now_s - self._pending_s >= HOLD_S:
            self._write_pending()

    def _write_pending(self) -> None:
        records, self._pending = self._pending, []
        samples, self._samples = self._samples, []
        for first in range(0, len(records), BATCH_ROWS):
            self._add_journaled(_rows(records[first : first + BATCH_ROWS]))
        if samples:
            self._add_journaled({"client": client_rows(samples)})

    def _add_journaled(self, batches: Mapping[str, pa.RecordBatch]) -> None:
        try:
            if self._journal is not None:
                self._journal.append(batches)
        except OSError as error:
            self._lose_journal(error)
        self._add(batches)

    def _add(self, batches: Mapping[str, pa.RecordBatch]) -> None:
        for name, batch in batches.items():
            self._tables[name].add(batch)

    def _make_room(self, error: OSError) -> bool:
        """The journal's first: without it the run goes on, without the reserve it ends."""
        if error.errno not in _FULL:
            return False
        if self._journal is not None:
            self._lose_journal(error)
            return True
        if not self._reserved:
            return False
        self._give_up_reserve()
        self.disk_full = error.strerror or str(error)
        self._on_disk_full()
        return True

    def _lose_journal(self, error: OSError) -> None:
        self.journal_lost = error.strerror or str(error)
        self._drop_journal()

    def _drop_journal(self) -> None:
        journal, self._journal = self._journal, None
        if journal is not None:
            journal.discard()

    def _give_up_reserve(self) -> None:
        """Its room, but not the lock that its file is."""
        if self._reserved:
            self._reserved = False
            os.ftruncate(self._held, 0)

    def _leave_nothing(self) -> None:
        """Of a run that could not begin; where another writes its own, that stays."""
        for table in self._tables.values():
            table.discard()
        if self._held >= 0:
            (self.path / "queries.parquet").unlink(missing_ok=True)
        self._give_up_folder()

    def _give_up_folder(self) -> None:
        """Let others write there; what the journal holds stays."""
        if self._journal is not None:
            self._journal.close()
        held, self._held = self._held, -1
        if held >= 0:
            (self.path / RESERVE).unlink(missing_ok=True)
            os.close(held)

    def _not_written(self, error: OSError) -> RunNotWritten:
        return RunNotWritten(f"{self.path}: cannot write the run: {error.strerror or error}")


def _rows(records: list[RequestRecord]) -> dict[str, pa.RecordBatch]:
    return {"requests": request_rows(records), "chunks": chunk_rows(records)}


def _reserve(run: Path) -> int:
    """Take room on the disk, and the folder for this process as long as the descriptor is open.

    Raises:
        OSError: there is no room, another process writes there, or a killed run is there.
    """
    try:
        descriptor = lock_run(run)
    except BlockingIOError:
        raise OSError(errno.EBUSY, "another replay writes its run there") from None
    try:
        if has_journal(run):
            text = f"it holds a run that was killed; recover that with: s2l report {run}"
            raise OSError(errno.EEXIST, text)
        os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
    except OSError:
        (run / RESERVE).unlink()
        os.close(descriptor)
        raise
    return descriptor
