"""Stamps what arrives for one query."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from s2l.collectors.well_formed import well_formed, well_formed_meta
from s2l.workloads.arrival import OK, Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.query import Query

Clock = Callable[[], int]
"""Nanoseconds of a monotonic clock."""

Record = Query | Document | Arrival
"""What a capture consists of. A document comes before the arrivals that name it."""


class RecordSink(Protocol):
    """Takes records without making the caller wait."""

    def put(self, record: Record) -> None:
        """Take one more record.

        Raises:
            Exception: an earlier record could not be kept; there is no use in going on.
        """


class Recorder:
    """Gives one query's arrivals their times and their order.

    An arrival is stamped when it is handed over, so a collector does that at the moment when its
    text is ready to send, and does nothing in between. The clock's zero is the query's start.
    """

    def __init__(self, query_id: str, clock: Clock, start_ns: int, sink: RecordSink) -> None:
        self._query_id = query_id
        self._clock = clock
        self.start_ns = start_ns
        """When the query started, by the clock."""
        self._sink = sink
        self._seq = 0

    def now_us(self) -> int:
        """Microseconds since the query's start."""
        return (self._clock() - self.start_ns) // 1000

    def arrived(
        self,
        kind: ArrivalKind,
        *,
        start_us: int,
        documents: Iterable[Document] = (),
        status: str = OK,
        detail: str = "",
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """Record that something is here now. ``start_us`` is when the work for it began."""
        self.arrived_at(
            self.now_us(),
            kind,
            start_us=start_us,
            documents=documents,
            status=status,
            detail=detail,
            meta=meta,
        )

    def arrived_at(
        self,
        arrival_us: int,
        kind: ArrivalKind,
        *,
        start_us: int,
        documents: Iterable[Document] = (),
        status: str = OK,
        detail: str = "",
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """Record what a thread has stamped itself, by ``now_us``, and hands over only now."""
        documents = tuple(documents)
        for document in documents:
            self._sink.put(document)
        ids = tuple(document.doc_id for document in documents)
        seq, self._seq = self._seq, self._seq + 1
        self._sink.put(
            Arrival(
                *(self._query_id, seq, kind, start_us, arrival_us, ids, status),
                # Servers' words: a lone surrogate in them would stop whoever writes them.
                well_formed(detail),
                meta=well_formed_meta(meta or {}),
            )
        )
