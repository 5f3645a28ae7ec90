"""Capturing a trace: nothing that was flushed is ever lost."""

import os
import shutil
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from s2l.workloads.arrival import Arrival
from s2l.workloads.capture_rules import CaptureRules
from s2l.workloads.document import Document
from s2l.workloads.errors import TraceError, TraceNotFound, disk_error
from s2l.workloads.manifest import MANIFEST, Collector, Manifest, decode_manifest
from s2l.workloads.privacy import HIDE, shown_arrival, shown_query
from s2l.workloads.query import Query
from s2l.workloads.schema import ARRIVALS, DOCUMENTS, QUERIES, Row
from s2l.workloads.sealing import seal
from s2l.workloads.wal import HEADER, WAL, Header, lock, read_header
from s2l.workloads.wal_queue import read_queue
from s2l.workloads.wal_reader import last_sound_commit
from s2l.workloads.wal_state import logged_state
from s2l.workloads.wal_writer import WalWriter

_FLUSH_ROWS = 16_384
_FLUSH_BYTES = 8 << 20


class _Pending:
    """Rows that were added and are not on disk yet."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {f.name: [] for f in (QUERIES, DOCUMENTS, ARRIVALS)}
        self.count = 0
        self.text_bytes = 0

    def add(self, table: str, row: Row, text_bytes: int = 0) -> None:
        self.rows[table].append(row)
        self.count += 1
        self.text_bytes += text_bytes

    def prepend(self, earlier: "_Pending") -> None:
        for table, rows in earlier.rows.items():
            self.rows[table] = rows + self.rows[table]
        self.count += earlier.count
        self.text_bytes += earlier.text_bytes

    @property
    def is_due(self) -> bool:
        return self.count >= _FLUSH_ROWS or self.text_bytes >= _FLUSH_BYTES


class TraceWriter:
    """Writes one trace folder.

    Rows go to a write-ahead log and become the dataset in ``finish``. Leaving the ``with`` block
    without it keeps a folder that ``recover`` can finish. ``flush`` may run in another thread
    than ``add_*``, which then do not wait for the disk.
    """

    def __init__(self, path: Path, header: Header, wal: WalWriter) -> None:
        self.path = path
        self._header = header
        self._wal = wal
        self._hide = HIDE[header.privacy]
        self._rules = CaptureRules()
        self.todo: list[Query] = []
        """The queries of the capture's queue that have no end yet, in order."""
        self.elapsed_us = 0
        """How far a resumed trace had come: queries asked from now on have offsets from here."""
        self._pending = _Pending()
        self._adding = threading.Lock()
        self._flushing = threading.Lock()
        self._closed = False

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        name: str,
        collector: Collector,
        licence: str,
        privacy: str = "full",
        clock: str = "monotonic",
        created_utc: str | None = None,
        queue: Sequence[Query] = (),
    ) -> "TraceWriter":
        """Start a capture in a new or empty folder.

        With a ``queue``, all queries that are to be asked, ``resume`` can go on with it.

        Raises:
            TraceError: the folder is not empty or cannot be written, or no such privacy setting.
        """
        if privacy not in HIDE:
            raise TraceError(f"privacy {privacy!r} is not one of {', '.join(HIDE)}")
        created = created_utc or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        header = Header(
            name=name,
            created_utc=created,
            collector=collector,
            clock=clock,
            licence=licence,
            privacy=privacy,
        )
        try:
            path.mkdir(parents=True, exist_ok=True)
            _check_empty(path)
            writer = cls(path, header, WalWriter.begin(path, header, queue))
        except FileExistsError:
            raise TraceError(f"{path}: is a file; name a new folder for the trace") from None
        except OSError as error:
            raise disk_error(path, error) from None
        writer.todo = list(queue)
        return writer

    @classmethod
    def resume(cls, path: Path) -> "TraceWriter":
        """Go on with an interrupted capture: ask what is in ``todo``, then ``finish``.

        What a query without an end had brought is kept until it is asked again, and left out then.

        Raises:
            TraceNotFound, NotATrace: nothing that could be resumed is there.
            TraceError: it is finished or still being written, or the disk would not take it.
        """
        if not path.is_dir():
            raise TraceNotFound(f"{path}: no such trace folder")
        if (path / MANIFEST).is_file():
            raise TraceError(f"{path}: is finished; there is nothing to resume")
        header, queue = read_header(path), read_queue(path)
        try:
            wal = WalWriter.reopen(path)
            try:
                state = logged_state(path, wal.commit)
            except BaseException:
                wal.close()
                raise
        except OSError as error:
            raise disk_error(path, error, "; nothing is lost, try again") from None
        writer = cls(path, header, wal)
        writer._rules.restore(state.finished, state.query_rows, state.documents)
        writer.todo = [query for query in queue if query.query_id not in state.finished]
        writer.elapsed_us = state.elapsed_us
        return writer

    @property
    def collector(self) -> Collector:
        """What makes this trace, and with which options."""
        return self._header.collector

    def add_query(self, query: Query) -> None:
        """Add a query, before its arrivals. Raises ValueError on misuse."""
        row = QUERIES.row(shown_query(self._header.privacy, query))
        with self._adding:
            self._rules.check_query(query)
            self._pending.add(QUERIES.name, row, len(query.text))
            self._rules.add_query(query.query_id)
        self._flush_when_due()

    def has_document(self, doc_id: str) -> bool:
        """Whether a document with this id was added."""
        return self._rules.has_document(doc_id)

    def add_document(self, document: Document) -> None:
        """Add a document, before arrivals that name it; a known doc_id is written once."""
        if self._rules.has_document(document.doc_id):
            return
        row = DOCUMENTS.row(self._hide(document))
        with self._adding:
            if self._rules.has_document(document.doc_id):
                return
            self._rules.check_document(document)
            self._pending.add(DOCUMENTS.name, row, len(row[3] or ""))
            self._rules.add_document(document.doc_id)
        self._flush_when_due()

    def add_arrival(self, arrival: Arrival) -> None:
        """Add an arrival of a query.

        Raises:
            ValueError: its query or a document is missing, ``seq`` does not follow, time runs
                backwards, the query has ended, or a failed arrival has documents.
        """
        row = ARRIVALS.row(shown_arrival(self._header.privacy, arrival))
        with self._adding:
            query_row = self._rules.check_arrival(arrival)
            self._pending.add(ARRIVALS.name, (*row, query_row), len(row[7]) + len(row[8]))
            self._rules.add_arrival(arrival)
        self._flush_when_due()

    def _flush_when_due(self) -> None:
        if self._pending.is_due:
            self.flush()

    def flush(self) -> None:
        """Return when everything added before is on disk: it survives kill -9 and power loss.

        Raises:
            TraceError: the disk would not take it. Nothing is lost, and it may be tried again.
        """
        with self._flushing:
            if self._closed:
                raise ValueError(f"{self.path}: the writer is closed")
            with self._adding:
                taken, self._pending = self._pending, _Pending()
            try:
                self._wal.append(taken.rows)
            except BaseException as error:
                with self._adding:
                    self._pending.prepend(taken)
                if isinstance(error, OSError):
                    raise disk_error(self.path, error, _kept(self.path)) from None
                raise

    def finish(self) -> Manifest:
        """Turn what was captured into the finished dataset, and close the writer.

        Raises:
            TraceError: the disk would not take it; the folder stays recoverable.
        """
        self.flush()
        try:
            return seal(self.path, self._header, self._wal.commit)
        except OSError as error:
            raise disk_error(self.path, error, _kept(self.path)) from None
        finally:
            self._close()

    def _close(self) -> None:
        self._closed = True
        self._wal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._closed:
            return
        try:
            self.flush()
        except TraceError as failure:
            if error is None:
                raise
            error.add_note(str(failure))  # the first error is the one to tell
        finally:
            self._close()


def _check_empty(path: Path) -> None:
    """Let a folder pass whose capture was killed before it began: its log has no header."""
    names = {entry.name for entry in path.iterdir()}
    if names == {WAL} and not (path / WAL / HEADER).exists():
        shutil.rmtree(path / WAL)
    elif names:
        raise TraceError(f"{path}: not empty; name a new folder for the trace")


def _kept(path: Path) -> str:
    return f"; what was flushed before is kept: s2l dataset recover {path}"


def recover(path: Path) -> Manifest:
    """Finish an interrupted capture with everything that was flushed; a finished one stays.

    Raises:
        TraceNotFound, NotATrace: nothing to recover is there.
        TraceError: it is still being written, or the disk would not take the result.
    """
    if not path.is_dir():
        raise TraceNotFound(f"{path}: no such trace folder")
    try:
        if (path / MANIFEST).is_file():
            return _recover_finished(path)
        return _recover_log(path)
    except OSError as error:
        raise disk_error(path, error, "; nothing is lost, try again") from None


def _recover_log(path: Path) -> Manifest:
    header = read_header(path)
    held = lock(path)
    try:
        return seal(path, header, last_sound_commit(path))
    finally:
        os.close(held)


def _recover_finished(path: Path) -> Manifest:
    """Remove a log that outlived its manifest: finishing was cut short at its very end."""
    manifest = decode_manifest((path / MANIFEST).read_bytes(), path / MANIFEST)
    if (path / WAL / HEADER).is_file():
        os.close(lock(path))
    if (path / WAL).is_dir():
        shutil.rmtree(path / WAL)
    return manifest
