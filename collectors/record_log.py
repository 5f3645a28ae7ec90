"""Keeps records while they are being taken, without disturbing the clock of the taker."""

import queue
import threading
import time
from typing import Final, Protocol

from s2l.collectors.record import Record
from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.query import Query

_FLUSH_EVERY_S: Final = 1.0


class TraceSink(Protocol):
    """The part of a trace writer that a capture needs."""

    def add_query(self, query: Query) -> None:
        """Take a query, before its arrivals."""

    def add_document(self, document: Document) -> None:
        """Take a document, before the arrivals that name it; it may come again."""

    def add_arrival(self, arrival: Arrival) -> None:
        """Take an arrival; those of a query come in order."""

    def flush(self) -> None:
        """Put what was taken where a crash of this process leaves it."""


class RecordLog:
    """A queue with a thread behind it that writes: ``put`` costs microseconds.

    Records are flushed at the end of each query, and never later than a second after they came.
    """

    def __init__(self, writer: TraceSink) -> None:
        self._writer = writer
        self._queue: queue.SimpleQueue[Record | None] = queue.SimpleQueue()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="record-log", daemon=True)
        self._thread.start()

    def put(self, record: Record) -> None:
        """Queue one record.

        Raises:
            Exception: what kept an earlier record from being written.
        """
        if self._error is not None:
            raise self._error
        self._queue.put(record)

    def close(self) -> None:
        """Write and flush all that is queued.

        Raises:
            Exception: what kept a record from being written.
        """
        self._queue.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while self._write_until_flush():
                self._writer.flush()
            self._writer.flush()
        except Exception as error:
            self._error = error

    def _write_until_flush(self) -> bool:
        """Write records until a flush is due; False when there will be no more."""
        record = self._queue.get()
        deadline_s = time.monotonic() + _FLUSH_EVERY_S
        while record is not None:
            self._write(record)
            if isinstance(record, Arrival) and record.kind is ArrivalKind.END:
                return True
            try:
                record = self._queue.get(timeout=max(0.0, deadline_s - time.monotonic()))
            except queue.Empty:
                return True
        return False

    def _write(self, record: Record) -> None:
        match record:
            case Query():
                self._writer.add_query(record)
            case Document():
                self._writer.add_document(record)
            case Arrival():
                self._writer.add_arrival(record)
