"""A capture by several workers: one trace of all parts, whatever becomes of the workers.

The workers are threads here, so that each end can be brought about at a known moment; everything
else is as in a cluster.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from s2l.collecting.crew import ScaledCapture, Show
from s2l.collecting.parts import parts_folder
from s2l.collecting.run import Outcome, capture_with
from s2l.collecting.watch import Watch
from s2l.collecting.worker import TOKEN, CaptureWorker
from s2l.collectors.collect import Progress, collect
from s2l.collectors.record import Recorder
from s2l.workloads.arrival import ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.errors import TraceError
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter, recover
from s2l.workloads.validation import validate

sys.path.insert(0, str(Path(__file__).parent))
from thread_crew import ElsewhereCrew, ThreadCrew

COLLECTOR = Collector("test", "1", {"hits": 2})
QUERIES = tuple(Query(f"q{number}", f"question {number}") for number in range(7))


@dataclass(frozen=True)
class Job:
    """Two pages a query, of which all have one; it stays with the queries in ``stays``."""

    share: tuple[Query, ...]
    stays: tuple[str, ...] = ()
    fails: str = ""

    async def retrieve(self, query: Query, record: Recorder) -> None:
        for text in ("in all", query.text):
            await asyncio.sleep(0.001)
            page = Document.of_text(url="http://a/", title="", text=text)
            record.arrived(ArrivalKind.APPEND, start_us=0, documents=(page,))
        if query.query_id == self.fails:
            raise OSError("the disk is full")
        if query.query_id in self.stays:
            await asyncio.Event().wait()

    async def capture(self, path: Path, watch: Watch) -> None:
        watch.update(Progress(0, len(self.share), {}))
        watch.waiting = lambda: {"a:80": 1}
        with TraceWriter.create(path, name="p", collector=COLLECTOR, licence="x") as writer:
            offset_us = await watch.begin()
            await collect(
                self.share,
                self,
                writer,
                concurrency=1,
                progress=watch.update,
                first_offset_us=offset_us,
                stop=watch.stop,
            )


def _jobs(workers: int, **options: Any) -> list[Job]:
    return [Job(QUERIES[worker::workers], **options) for worker in range(workers)]


async def _capture(
    crew: ThreadCrew,
    jobs: Sequence[Job],
    path: Path,
    see: Callable[[Progress], None] = lambda state: None,
    queries: Sequence[Query] = QUERIES,
) -> Outcome:
    def display(capture: ScaledCapture) -> Show:
        def show(state: Progress) -> None:
            assert set(capture.waiting()) == {"a:80"}
            see(state)

        return show

    return await capture_with(
        crew, jobs, queries, path, collector=COLLECTOR, licence="CC0-1.0", display=display
    )


def _check_whole(path: Path) -> Trace:
    assert [problem.message for problem in validate(path)] == []
    trace = Trace.open(path)
    assert {one.query.query_id for one in trace.retrievals() if one.finished} == {
        query.query_id for query in QUERIES
    }
    assert trace.manifest.counts.documents == 1 + len(QUERIES)
    return trace


async def test_all_parts_are_one_trace(tmp_path: Path) -> None:
    seen: list[Progress] = []
    outcome = await _capture(ThreadCrew(3), _jobs(3), tmp_path / "trace", seen.append)
    assert outcome == Outcome(lost=[], unfinished=[])
    trace = _check_whole(tmp_path / "trace")
    options = {"hits": 2, "workers": 3, "clock_error_us": 0}
    assert trace.manifest.collector == Collector("test", "1", options)
    offsets = [query.offset_us for query in trace.queries()]
    assert offsets == sorted(offsets)
    assert 0 <= offsets[0] < 1_000_000
    assert (seen[-1].done, seen[-1].total, seen[-1].texts) == (7, 7, 14)
    assert {state.total for state in seen} == {7}
    assert [path.name for path in tmp_path.iterdir()] == ["trace"]


async def test_parts_on_other_machines_are_fetched(tmp_path: Path) -> None:
    crew = ElsewhereCrew(2)
    outcome = await _capture(crew, _jobs(2), tmp_path / "trace")
    assert outcome.finished
    _check_whole(tmp_path / "trace")
    assert {call for call in crew.calls if call[1] in ("read", "discard")} == {
        (worker, method) for worker in (0, 1) for method in ("read", "discard")
    }
    assert not any(worker._path.exists() for worker in crew.objects)


async def test_what_a_lost_worker_had_captured_is_kept(tmp_path: Path) -> None:
    crew = ThreadCrew(2)

    def see(state: Progress) -> None:
        if state.done == 5:  # four of the one, one of the other, which stays with its second
            crew.lose(1)

    jobs = [Job(QUERIES[0::2]), Job(QUERIES[1::2], stays=("q3",))]
    outcome = await _capture(crew, jobs, tmp_path / "trace", see)
    assert outcome.lost == ["worker 1 (process 7 on here) died"]
    assert list(outcome.unfinished) == ["q3", "q5"]
    with pytest.raises(click.ClickException, match=r"not finished: 2 queries \(q3, q5\); .* x"):
        outcome.check("x")
    counts = recover(tmp_path / "trace").counts
    assert (counts.queries, counts.finished_queries) == (6, 5)


async def test_a_capture_that_fails_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    jobs = [Job(QUERIES[0::2]), Job(QUERIES[1::2], fails="q3")]
    outcome = await _capture(ThreadCrew(2), jobs, tmp_path / "trace")
    assert outcome.lost == ["worker 1 (process 7 on here): the disk is full"]
    assert list(outcome.unfinished) == ["q3", "q5"]


async def test_what_a_lost_worker_elsewhere_had_is_lost(tmp_path: Path) -> None:
    crew = ElsewhereCrew(2)

    def see(state: Progress) -> None:
        if state.done == 6:
            crew.lose(1)

    jobs = [Job(QUERIES[0::2]), Job(QUERIES[1::2], stays=("q5",))]
    outcome = await _capture(crew, jobs, tmp_path / "trace", see)
    assert list(outcome.unfinished) == ["q1", "q3", "q5"]
    assert recover(tmp_path / "trace").counts.finished_queries == 4


async def test_interrupted_once_all_workers_finish_what_they_have_begun(tmp_path: Path) -> None:
    sent: list[int] = []

    def see(state: Progress) -> None:
        if state.texts and not sent:
            sent.append(1)
            os.kill(os.getpid(), signal.SIGINT)

    many = tuple(Query(f"q{number}", f"question {number}") for number in range(4000))
    jobs = [Job(many[worker::2]) for worker in range(2)]
    path = tmp_path / "trace"
    outcome = await _capture(ThreadCrew(2), jobs, path, see, queries=many)
    assert outcome.lost == []
    outcome.check("never said")
    with TraceWriter.resume(path) as writer:
        assert [query.query_id for query in writer.todo] == list(outcome.unfinished)
    counts = recover(path).counts
    assert 0 < counts.queries == counts.finished_queries == 4000 - len(outcome.unfinished)


async def test_interrupted_twice_it_ends_at_once(tmp_path: Path) -> None:
    sent: list[int] = []

    def see(state: Progress) -> None:
        if state.texts and not sent:
            sent.append(1)
            loop = asyncio.get_running_loop()
            os.kill(os.getpid(), signal.SIGINT)
            loop.call_later(0.1, os.kill, os.getpid(), signal.SIGINT)

    jobs = _jobs(2, stays=("q0", "q1"))
    outcome = await _capture(ThreadCrew(2), jobs, tmp_path / "trace", see)
    assert len(outcome.unfinished) == 7
    counts = recover(tmp_path / "trace").counts
    assert (counts.queries, counts.finished_queries, counts.documents) == (2, 0, 3)


async def test_a_job_that_cannot_be_opened_leaves_nothing(tmp_path: Path) -> None:
    class Bad(Job):
        async def capture(self, path: Path, watch: Watch) -> None:
            raise TraceError("no such corpus")

    with pytest.raises(TraceError, match="no such corpus"):
        await _capture(ThreadCrew(2), [Job(QUERIES), Bad(())], tmp_path / "trace")
    assert list(tmp_path.iterdir()) == []


async def test_a_folder_with_something_in_it_is_refused_first(tmp_path: Path) -> None:
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace" / "mine").touch()
    with pytest.raises(TraceError, match="not empty"):
        await _capture(ThreadCrew(2), _jobs(2), tmp_path / "trace")
    (tmp_path / "other.parts").mkdir()
    with pytest.raises(TraceError, match="holds parts of a capture that failed"):
        await _capture(ThreadCrew(2), _jobs(2), tmp_path / "other")


def test_a_worker_that_nobody_asks_ends_and_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("s2l.collecting.worker.SILENCE_S", 0.2)
    (tmp_path / TOKEN).write_text("secret")
    worker = CaptureWorker(tmp_path, "secret")
    assert worker.prepare("part", Job(QUERIES, stays=("q1",)))
    worker.begin(time.monotonic_ns())
    assert worker._running is not None
    with pytest.raises(CancelledError):
        worker._running.result(timeout=20)
    counts = Trace.open(tmp_path / "part").manifest.counts
    assert (counts.queries, counts.finished_queries) == (2, 1)
    assert worker.report().over
    assert worker.result() is None


async def test_more_workers_than_queries_leave_some_idle(tmp_path: Path) -> None:
    outcome = await _capture(ThreadCrew(9), _jobs(9), tmp_path / "trace")
    assert outcome.finished
    _check_whole(tmp_path / "trace")


def test_what_was_flushed_to_a_part_is_kept_when_all_fails(tmp_path: Path) -> None:
    path = tmp_path / "t"

    def capture() -> None:
        with parts_folder(path) as (folder, _):
            part = folder / "0"
            with TraceWriter.create(part, name="t", collector=COLLECTOR, licence="x") as writer:
                writer.add_query(QUERIES[0])
                writer.flush()
            raise RuntimeError("the planner failed")

    with pytest.raises(RuntimeError):
        capture()
    assert recover(tmp_path / "t.parts" / "0").counts.queries == 1
