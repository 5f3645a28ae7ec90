"""The one loop that runs queries through a collector and stamps what arrives."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from s2l.collectors.base import Collector
from s2l.collectors.record import Clock, Record, Recorder
from s2l.collectors.record_log import RecordLog, TraceSink
from s2l.workloads.arrival import OK, Arrival, ArrivalKind
from s2l.workloads.at_once import first_of
from s2l.workloads.query import Query


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a capture is: queries done of all, failed arrivals by status, pieces of text."""

    done: int
    total: int
    failures: Mapping[str, int]
    texts: int = 0


OnProgress = Callable[[Progress], None]


class _Capture:
    """A capture under way. It is the sink of its recorders, to see what passes."""

    def __init__(
        self,
        queries: Sequence[Query],
        collector: Collector,
        log: RecordLog,
        clock: Clock,
        on_progress: OnProgress | None,
        first_offset_us: int,
        stop: asyncio.Event | None,
    ) -> None:
        self._waiting = iter(queries)
        self._total = len(queries)
        self._collector = collector
        self._log = log
        self._clock = clock
        self._on_progress = on_progress
        self._start_ns = clock() - first_offset_us * 1000
        self._stop = stop
        self._done = 0
        self._texts = 0
        self._failures: Counter[str] = Counter()

    def progress(self) -> Progress:
        return Progress(self._done, self._total, dict(self._failures), self._texts)

    async def work(self) -> None:
        """Run one waiting query after the other, until there are none or it is to stop."""
        for query in self._waiting:
            await self._retrieve(query)
            if self._stop is not None and self._stop.is_set():
                return

    def put(self, record: Record) -> None:
        """Count and pass on."""
        self._log.put(record)
        if isinstance(record, Arrival):
            self._count(record)

    def _count(self, arrival: Arrival) -> None:
        self._done += arrival.kind is ArrivalKind.END
        self._texts += bool(arrival.doc_ids)
        if arrival.status != OK:
            self._failures[arrival.status] += 1
        if self._on_progress:
            self._on_progress(self.progress())

    async def _retrieve(self, query: Query) -> None:
        start_ns = self._clock()
        self._log.put(replace(query, offset_us=(start_ns - self._start_ns) // 1000))
        record = Recorder(query.query_id, self._clock, start_ns, self)
        await self._collector.retrieve(query, record)
        record.arrived(ArrivalKind.END, start_us=0)


async def collect(
    queries: Sequence[Query],
    collector: Collector,
    writer: TraceSink,
    *,
    concurrency: int = 8,
    clock: Clock = time.monotonic_ns,
    progress: OnProgress | None = None,
    first_offset_us: int = 0,
    stop: asyncio.Event | None = None,
) -> Progress:
    """Run every query, at most ``concurrency`` at a time, in order; record all into ``writer``.

    ``offset_us`` of a query becomes its real start since this call, plus ``first_offset_us``.
    ``progress`` is called after each arrival, ends too. Once ``stop`` is set no further query
    begins. The writer is flushed but not finished, also when this is cancelled or fails: what
    had arrived by then is kept, and a query that was under way has no ``end``.

    Raises:
        ValueError: no query may run.
        Exception: what the collector or the writer raised; the other queries are cancelled.
    """
    if concurrency < 1:
        raise ValueError(f"concurrency is {concurrency}: give 1 or more")
    log = RecordLog(writer)
    capture = _Capture(queries, collector, log, clock, progress, first_offset_us, stop)
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(queries))):
                group.create_task(capture.work())
    except ExceptionGroup as errors:
        raise first_of(errors) from errors
    finally:
        log.close()
    return capture.progress()
