"""The one loop that runs queries through a collector and stamps what arrives."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from s2l.collectors.base import Collector
from s2l.collectors.record import Clock, Recorder
from s2l.collectors.record_log import RecordLog, TraceSink
from s2l.workloads.arrival import ArrivalKind
from s2l.workloads.query import Query


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a capture is: queries done of all, and failed arrivals so far by status."""

    done: int
    total: int
    failures: Mapping[str, int]


OnProgress = Callable[[Progress], None]


class _Capture:
    """A capture under way."""

    def __init__(
        self,
        queries: Sequence[Query],
        collector: Collector,
        log: RecordLog,
        clock: Clock,
        on_progress: OnProgress | None,
    ) -> None:
        self._waiting = iter(queries)
        self._total = len(queries)
        self._collector = collector
        self._log = log
        self._clock = clock
        self._on_progress = on_progress
        self._start_ns = clock()
        self._done = 0
        self._failures: Counter[str] = Counter()

    def progress(self) -> Progress:
        return Progress(self._done, self._total, dict(self._failures))

    async def work(self) -> None:
        """Run one waiting query after the other."""
        for query in self._waiting:
            await self._retrieve(query)
            if self._on_progress:
                self._on_progress(self.progress())

    async def _retrieve(self, query: Query) -> None:
        start_ns = self._clock()
        self._log.put(replace(query, offset_us=(start_ns - self._start_ns) // 1000))
        record = Recorder(query.query_id, self._clock, start_ns, self._log)
        await self._collector.retrieve(query, record)
        record.arrived(ArrivalKind.END, start_us=0)
        self._done += 1
        self._failures.update(record.failures)


async def collect(
    queries: Sequence[Query],
    collector: Collector,
    writer: TraceSink,
    *,
    concurrency: int = 8,
    clock: Clock = time.monotonic_ns,
    progress: OnProgress | None = None,
) -> Progress:
    """Run every query, at most ``concurrency`` at a time, in order; record all into ``writer``.

    ``offset_us`` of a query becomes its real start since this call. ``progress`` is called after
    each query. The writer is flushed but not finished, also when this is cancelled or fails: what
    had arrived by then is kept, and a query that was under way has no ``end``.

    Raises:
        ValueError: no query may run.
        Exception: what the collector or the writer raised; the other queries are cancelled.
    """
    if concurrency < 1:
        raise ValueError(f"concurrency is {concurrency}: give 1 or more")
    log = RecordLog(writer)
    capture = _Capture(queries, collector, log, clock, progress)
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(queries))):
                group.create_task(capture.work())
    except ExceptionGroup as errors:
        raise _first(errors) from errors
    finally:
        log.close()
    return capture.progress()


def _first(errors: ExceptionGroup[Exception]) -> Exception:
    """The error that cancelled the other tasks, out of groups in groups."""
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, ExceptionGroup) else first
