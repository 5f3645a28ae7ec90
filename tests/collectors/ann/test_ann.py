import asyncio
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from s2l.collectors.ann.ann import Ann, Prepared, has_words
from s2l.collectors.ann.errors import AnnError, SearchFailed
from s2l.collectors.ann.index import build_index, open_index
from s2l.collectors.ann.index_settings import IndexSettings, SearchSettings
from s2l.collectors.ann.latency import AsMeasured, LatencyModel, TimeScale
from s2l.collectors.ann.preparing import measured_recall, no_time, prepare_questions
from s2l.collectors.ann.progressive_search import ProgressiveSearch
from s2l.collectors.ann.searchers import ProcessSearcher, ThreadSearcher
from s2l.collectors.ann.stage import Stage
from s2l.collectors.ann.vectors import Matrix
from s2l.collectors.collect import collect
from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.retrieval import Retrieval
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter

Documents = Callable[[Sequence[str]], list[Document]]


class Looking:
    """Embeds "q7" as the seventh of these vectors."""

    name = "looking"

    def __init__(self, vectors: Matrix) -> None:
        self._vectors = vectors
        self.dimension = vectors.shape[1]

    def embed(self, texts: Sequence[str]) -> Matrix:
        return np.array([self._vectors[int(text[1:])] for text in texts], np.float32)

    embed_questions = embed


@dataclass(frozen=True)
class Setup:
    passages: list[Document]
    vectors: Matrix
    questions: Matrix
    folder: Path

    def stages(self, k: int, kind: str = "ivf-flat", n: int | None = None) -> Sequence[Stage]:
        vectors = np.ascontiguousarray(self.vectors[:n])
        settings = IndexSettings(kind=kind, lists=None if n else 40)
        build_index(vectors, settings, self.folder / kind, "")
        index = open_index(vectors, settings, self.folder / kind, "")
        return index.stages(SearchSettings(k=k), k)

    def prepared(
        self, queries: Sequence[Query], k: int, n: int | None = None
    ) -> dict[str, Prepared]:
        return prepare_questions(queries, Looking(self.questions), self.vectors[:n], k)


@pytest.fixture
def setup(tmp_path: Path, vectors: Matrix, questions: Matrix, passages_of: Documents) -> Setup:
    passages = passages_of([f"passage {i}" for i in range(len(vectors))])
    return Setup(passages, vectors, questions, tmp_path)


def queries_of(n: int) -> list[Query]:
    return [Query(f"id{i}", f"q{i}") for i in range(n)]


async def captured(
    setup: Setup,
    queries: Sequence[Query],
    prepared: Mapping[str, Prepared],
    stages: Sequence[Stage],
    *,
    k: int,
    latency: LatencyModel | None = None,
    workers: int = 2,
    **given: Any,
) -> list[Retrieval]:
    path = setup.folder / "trace"
    made_by = Collector("ann", "1")
    kind = ThreadSearcher if "clock" in given else ProcessSearcher
    sleep = {"sleep": given.pop("sleep")} if "sleep" in given else {}
    with (
        kind(ProgressiveSearch(stages, k), workers) as searcher,
        TraceWriter.create(path, name="t", collector=made_by, licence="x") as writer,
    ):
        model = latency or AsMeasured()
        ann = Ann(setup.passages, prepared, searcher, model, k=k, **sleep)
        await collect(queries, ann, writer, **given)
        writer.finish()
    return list(Trace.open(path).retrievals())


def replaces(retrieval: Retrieval) -> Sequence[Arrival]:
    *found, end = retrieval.arrivals
    assert end.kind is ArrivalKind.END
    assert all(a.kind is ArrivalKind.REPLACE for a in found)
    return found


@pytest.mark.parametrize("kind", ["ivf-flat", "ivf-pq", "ivf-disk", "hnsw"])
async def test_every_change_is_a_replace_inside_the_search(setup: Setup, kind: str) -> None:
    queries, k = queries_of(40), 5
    prepared = setup.prepared(queries, k)
    retrievals = await captured(setup, queries, prepared, setup.stages(k, kind), k=k)
    assert len(retrievals) == 40
    for retrieval in retrievals:
        found = replaces(retrieval)
        _check_times(found, retrieval.arrivals[-1])
        assert all(a.doc_ids != b.doc_ids for a, b in pairwise(found))
        exact = {setup.passages[row].doc_id for row in prepared[retrieval.query.query_id].exact}
        for arrival in found:
            shared = exact & set(arrival.doc_ids)
            assert arrival.meta["recall"] == pytest.approx(len(shared) / k, abs=1e-4)
            assert arrival.meta.get("shortfall", 0) == k - len(arrival.doc_ids)


def _check_times(found: Sequence[Arrival], end: Arrival) -> None:
    start_us = found[0].meta["queued_us"]
    end_us = start_us + found[-1].meta["search_end_us"]
    assert start_us == found[0].start_us
    assert end_us <= end.arrival_us
    for arrival in found:
        assert start_us <= arrival.start_us <= arrival.arrival_us <= end_us
        assert arrival.meta["search_us"] == arrival.arrival_us - start_us
    for before, after in pairwise(found):
        assert before.arrival_us <= after.start_us


async def test_k_larger_than_the_corpus(setup: Setup) -> None:
    queries = queries_of(3)
    prepared = setup.prepared(queries, 10, n=4)
    stages = setup.stages(10, n=4)
    for retrieval in await captured(setup, queries, prepared, stages, k=10):
        last = replaces(retrieval)[-1]
        assert len(last.doc_ids) == 4
        assert (last.meta["shortfall"], last.meta["recall"]) == (6, 1.0)


async def test_a_question_without_words_is_a_failure_in_the_trace(setup: Setup) -> None:
    queries = [Query("none", "?! _ …"), *queries_of(2)]
    prepared = setup.prepared(queries, 5)
    assert set(prepared) == {"id0", "id1"}
    none, *others = await captured(setup, queries, prepared, setup.stages(5), k=5)
    failed, end = none.arrivals
    assert (failed.status, failed.doc_ids, end.kind) == ("no_words", (), ArrivalKind.END)
    assert all(replaces(retrieval) for retrieval in others)
    assert [has_words(text) for text in ("3?", "日本", "—", "")] == [True, True, False, False]


def test_no_question_at_all(setup: Setup) -> None:
    assert setup.prepared([Query("none", "?")], 5) == {}
    assert measured_recall([], {}, 5) == {}


def test_questions_with_vectors_that_cannot_be_searched(setup: Setup) -> None:
    bad = setup.questions.copy()
    bad[1] = np.nan
    with pytest.raises(AnnError, match="the embedding of 'id1' is not finite"):
        prepare_questions(queries_of(3), Looking(bad), setup.vectors, 5)
    with pytest.raises(AnnError, match="'id0' has 16 dimensions, not 32"):
        prepare_questions(queries_of(1), Looking(setup.questions[:, :16]), setup.vectors, 5)


def test_measured_recall(setup: Setup) -> None:
    prepared = setup.prepared(queries_of(40), 10)
    search = ProgressiveSearch(setup.stages(10), 10)
    searches = [search.run(one.question, no_time) for one in prepared.values()]
    found = measured_recall(searches, prepared, 10)
    assert list(found) == ["1", "5", "10"]
    assert all(0.9 < value <= 1 for value in found.values())
    assert measured_recall(searches, prepared, 3).keys() == {"1", "3"}


class Meeting:
    """A stage that goes on only when as many searches as ``barrier`` says are in it."""

    name = "meeting"

    def __init__(self, stage: Stage, parties: int) -> None:
        self._stage = stage
        fork = multiprocessing.get_context("fork")
        self._barrier = fork.Barrier(parties, timeout=10)

    def steps(self, question: Any, pool: Any) -> Iterator[Any]:
        self._barrier.wait()
        yield from self._stage.steps(question, pool)


async def test_as_many_searches_run_at_once_as_there_are_workers(setup: Setup) -> None:
    queries = queries_of(8)
    prepared = setup.prepared(queries, 5)
    [stage] = setup.stages(5)
    found = await captured(
        setup, queries, prepared, [Meeting(stage, 4)], k=5, workers=4, concurrency=8
    )
    alone = ProgressiveSearch([stage], 5)
    for retrieval in found:
        last = replaces(retrieval)[-1]
        rows = alone.run(prepared[retrieval.query.query_id].question, no_time).rows
        assert last.doc_ids == tuple(setup.passages[row].doc_id for row in rows)


class FakeTime:
    """A clock that only sleeping moves on."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns

    async def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)
        await asyncio.sleep(0)


class Ticking:
    """A stage each of whose steps takes a millisecond of fake time."""

    name = "ticking"

    def __init__(self, stage: Stage, time: FakeTime) -> None:
        self._stage = stage
        self._time = time

    def steps(self, question: Any, pool: Any) -> Iterator[Any]:
        for found in self._stage.steps(question, pool):
            self._time.now_ns += 1_000_000
            yield found


async def test_stretched_times_are_waited_for(setup: Setup) -> None:
    time, queries = FakeTime(), queries_of(1)
    [stage] = setup.stages(5)
    [retrieval] = await captured(
        setup,
        queries,
        setup.prepared(queries, 5),
        [Ticking(stage, time)],
        k=5,
        latency=TimeScale(100),
        sleep=time.sleep,
        clock=time,
    )
    found = replaces(retrieval)
    for arrival in found:
        assert arrival.arrival_us == 100_000 * arrival.meta["step"]
        assert arrival.meta["search_us"] == 1000 * arrival.meta["step"]
        assert arrival.start_us == arrival.arrival_us - 100_000
    assert found[-1].meta["steps"] == {"ticking": 32}
    assert found[-1].meta["search_end_us"] == 32_000
    assert retrieval.arrivals[-1].arrival_us == 3_200_000


class Dying:
    name = "dying"

    def steps(self, question: Any, pool: Any) -> Iterator[Any]:
        os._exit(9)
        yield pool


async def test_a_process_that_is_killed_ends_the_capture(setup: Setup) -> None:
    queries = queries_of(2)
    with pytest.raises(SearchFailed, match="use fewer --searches"):
        await captured(setup, queries, setup.prepared(queries, 5), [Dying()], k=5)


class Failing:
    name = "failing"

    def steps(self, question: Any, pool: Any) -> Iterator[Any]:
        raise RuntimeError("no such list")
        yield pool


async def test_what_goes_wrong_in_a_search_ends_the_capture(setup: Setup) -> None:
    queries = queries_of(2)
    with pytest.raises(RuntimeError, match="no such list"):
        await captured(setup, queries, setup.prepared(queries, 5), [Failing()], k=5)
