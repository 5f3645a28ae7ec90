import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from s2l.collectors.collect import Progress, collect
from s2l.collectors.record import Recorder
from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.query import Query

_APPEND = ArrivalKind.APPEND
_DOCUMENT = Document.of_text(url="http://host/a", title="A", text="text")


class FakeClock:
    """A clock that a test moves."""

    def __init__(self, us: int = 0) -> None:
        self.us = us

    def __call__(self) -> int:
        return self.us * 1000


class Scripted:
    """A collector that does what a function says."""

    def __init__(self, script: Callable[[Query, Recorder], object]) -> None:
        self._script = script

    async def retrieve(self, query: Query, record: Recorder) -> None:
        done = self._script(query, record)
        if asyncio.iscoroutine(done):
            await done


async def test_times_are_those_of_the_clock_since_the_querys_start(sink: Any) -> None:
    clock = FakeClock(1_000_000)

    def script(query: Query, record: Recorder) -> None:
        clock.us += 500
        record.arrived(ArrivalKind.SEARCH, start_us=0, meta={"hits": []})
        start_us = record.now_us()
        clock.us += 250
        record.arrived(_APPEND, start_us=start_us, documents=[_DOCUMENT])
        record.arrived(_APPEND, start_us=start_us, status="timeout", detail="over 1 s")

    queries = [Query("a", "A?", ("x",)), Query("b", "B?")]
    done = await collect(queries, Scripted(script), sink, concurrency=1, clock=clock)
    assert sink.queries() == [Query("a", "A?", ("x",), 0), Query("b", "B?", (), 750)]
    assert sink.arrivals("b") == [
        Arrival("b", 0, ArrivalKind.SEARCH, 0, 500, meta={"hits": []}),
        Arrival("b", 1, _APPEND, 500, 750, (_DOCUMENT.doc_id,)),
        Arrival("b", 2, _APPEND, 500, 750, (), "timeout", "over 1 s"),
        Arrival("b", 3, ArrivalKind.END, 0, 750),
    ]
    assert sink.records.index(_DOCUMENT) < sink.records.index(sink.arrivals("a")[1])
    assert sink.flushed == len(sink.records)
    assert done == Progress(2, 2, {"timeout": 2}, texts=2)


async def test_no_more_queries_run_at_once_than_allowed(sink: Any) -> None:
    running, most, seen = 0, 0, list[Progress]()

    async def script(query: Query, record: Recorder) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    queries = [Query(str(i), "?") for i in range(9)]
    await collect(queries, Scripted(script), sink, concurrency=4, progress=seen.append)
    assert most == 4
    assert [progress.done for progress in seen] == list(range(1, 10))
    assert [query.query_id for query in sink.queries()] == [str(i) for i in range(9)]


async def test_records_are_flushed_within_a_second_while_a_query_runs() -> None:
    flushed = threading.Event()

    class Sink:
        def add_query(self, query: Query) -> None: ...
        def add_document(self, document: Document) -> None: ...
        def add_arrival(self, arrival: Arrival) -> None: ...
        def flush(self) -> None:
            flushed.set()

    async def script(query: Query, record: Recorder) -> None:
        assert await asyncio.to_thread(flushed.wait, 5)

    await collect([Query("a", "?")], Scripted(script), Sink())


async def test_what_had_arrived_is_kept_when_a_capture_is_cancelled(sink: Any) -> None:
    waiting = asyncio.Event()

    async def script(query: Query, record: Recorder) -> None:
        record.arrived(_APPEND, start_us=0, documents=[_DOCUMENT])
        waiting.set()
        await asyncio.Event().wait()

    capture = asyncio.create_task(collect([Query("a", "?")], Scripted(script), sink))
    await waiting.wait()
    capture.cancel()
    with pytest.raises(asyncio.CancelledError):
        await capture
    assert [arrival.kind for arrival in sink.arrivals("a")] == [_APPEND]
    assert sink.flushed == 3


async def test_an_error_of_the_collector_ends_the_capture_as_itself(sink: Any) -> None:
    async def script(query: Query, record: Recorder) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_fail(query.query_id))

    with pytest.raises(KeyError, match="a"):
        await collect([Query("a", "?"), Query("b", "?")], Scripted(script), sink, concurrency=1)
    assert [query.query_id for query in sink.queries()] == ["a"]


async def _fail(name: str) -> None:
    raise KeyError(name)


async def test_a_full_disk_ends_the_capture(sink: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written = threading.Event()

    def full(document: Document) -> None:
        written.set()
        raise OSError(28, "No space left on device")

    async def script(query: Query, record: Recorder) -> None:
        record.arrived(_APPEND, start_us=0, documents=[_DOCUMENT])
        await asyncio.to_thread(written.wait, 5)

    monkeypatch.setattr(sink, "add_document", full)
    with pytest.raises(OSError, match="No space left"):
        await collect([Query(str(i), "?") for i in range(3)], Scripted(script), sink)


async def test_at_least_one_query_must_run(sink: Any) -> None:
    with pytest.raises(ValueError, match="give 1 or more"):
        await collect([], Scripted(lambda query, record: None), sink, concurrency=0)


async def test_progress_counts_texts_and_failures_as_they_arrive(sink: Any) -> None:
    seen: list[Progress] = []

    def script(query: Query, record: Recorder) -> None:
        record.arrived(_APPEND, start_us=0, documents=[_DOCUMENT])
        record.arrived(_APPEND, start_us=0, status="dns")

    await collect([Query("a", "?")], Scripted(script), sink, progress=seen.append)
    assert seen == [
        Progress(0, 1, {}, 1),
        Progress(0, 1, {"dns": 1}, 1),
        Progress(1, 1, {"dns": 1}, 1),
    ]


async def test_what_runs_is_finished_and_nothing_begins_once_it_is_to_stop(sink: Any) -> None:
    stop, clock = asyncio.Event(), FakeClock()

    async def script(query: Query, record: Recorder) -> None:
        clock.us += 5
        stop.set()
        await asyncio.sleep(0)

    queries = [Query(str(i), "?") for i in range(5)]
    options = {"concurrency": 2, "clock": clock, "first_offset_us": 1000, "stop": stop}
    done = await collect(queries, Scripted(script), sink, **options)
    assert (done.done, done.total) == (2, 5)
    assert [(q.query_id, q.offset_us) for q in sink.queries()] == [("0", 1000), ("1", 1005)]
    assert [a.kind for q in "01" for a in sink.arrivals(q)] == [ArrivalKind.END] * 2
