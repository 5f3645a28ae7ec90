from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np
import pytest

from s2l.collectors.ann.errors import AnnError
from s2l.collectors.ann.hnsw_stage import ladder
from s2l.collectors.ann.pool import Pool, Scores
from s2l.collectors.ann.progressive_search import ProgressiveSearch, Update
from s2l.collectors.ann.refine_stage import RefineStage
from s2l.collectors.ann.rerank import RerankStage
from s2l.collectors.ann.stage import Question
from s2l.workloads.document import Document

QUESTION = Question("how long", np.array([[1, 0]], np.float32))


class Scripted:
    """Says what it is told, step by step; None changes nothing."""

    def __init__(self, name: str, *script: tuple[int, ...] | None) -> None:
        self.name = name
        self._script = script

    def steps(self, question: Question, pool: Pool) -> Iterator[Pool]:
        for rows in self._script:
            pool = pool if rows is None else Pool(rows, tuple(float(i) for i in range(len(rows))))
            yield pool


class Lengths:
    """Prefers short passages."""

    name = "lengths"

    def scores(self, question: str, texts: Sequence[str]) -> Scores:
        assert question == "how long"
        return np.array([-len(text) for text in texts], np.float32)


class NotANumber(Lengths):
    def scores(self, question: str, texts: Sequence[str]) -> Scores:
        return np.full(len(texts), np.nan, np.float32)


def array(*values: float) -> Scores:
    return np.array(values, np.float32)


def test_merging() -> None:
    pool = Pool().merged(np.array([5, 3, -1]), array(0.9, 0.5, -1e38), 3)
    assert pool == Pool((5, 3), (-array(0.9).item(), -0.5))
    more = pool.merged(np.array([7, 8, 9]), array(1, 0.5, 0.4), 3)
    assert more.rows == (7, 5, 3)  # of equals, the earlier stays
    assert more.merged(np.array([1, 2]), array(0.5, 0.1), 3) is more
    assert more.merged(np.array([-1, -1]), array(-1e38, -1e38), 3) is more
    assert pool.merged(np.array([1, -1]), array(-2, -1e38), 3).rows == (5, 3, 1)


def test_every_change_of_the_ordered_best_is_an_update() -> None:
    clock = count(0, 10)
    stages = [Scripted("a", (1, 2, 3), None, (2, 1, 3), (2, 1, 9)), Scripted("b", (9, 2, 1))]
    found = ProgressiveSearch(stages, 2).run(QUESTION, lambda: next(clock))
    # The clock is read before each step and at each change. The third place is not shown.
    assert found.updates == (
        Update("a", 1, 0, 10, (1, 2)),
        Update("a", 3, 30, 40, (2, 1)),
        Update("b", 1, 60, 70, (9, 2)),
    )
    assert (found.start_us, found.end_us, found.rows) == (0, 90, (9, 2))
    assert found.steps == {"a": 4, "b": 1}


def test_a_stage_stops_when_it_is_stable() -> None:
    stages = [Scripted("a", (1,), None, (2,), None, None, (3,)), Scripted("b", None, (2,), (4,))]
    found = ProgressiveSearch(stages, 1, stop_when=2).run(QUESTION, lambda: 0)
    assert found.rows == (2,)
    assert found.steps == {"a": 5, "b": 2}


def test_nothing_found() -> None:
    found = ProgressiveSearch([Scripted("a", None)], 3).run(QUESTION, lambda: 4)
    assert (found.updates, found.rows, found.start_us, found.end_us) == ((), (), 4, 4)


def test_ladder() -> None:
    assert ladder(5, 64) == [5, 10, 20, 40, 64]
    assert ladder(64, 64) == [64]
    assert ladder(100, 64) == [64]


def test_refining_orders_by_the_vectors() -> None:
    vectors = np.array([[0, 1], [1, 0], [0.6, 0.8]], np.float32)
    [pool] = RefineStage(vectors).steps(QUESTION, Pool((0, 1, 2), (-3, -2, -1)))
    assert pool == Pool((1, 2, 0), (-1, -array(0.6).item(), 0))
    [empty] = RefineStage(vectors).steps(QUESTION, Pool())
    assert empty.rows == ()


def test_reranking() -> None:
    passages = [Document.of_text(url="", title="", text="x" * n) for n in (4, 1, 3, 2)]
    stages = [Scripted("a", (0, 2, 3, 1)), RerankStage(Lengths(), passages, 3)]
    found = ProgressiveSearch(stages, 2).run(QUESTION, lambda: 0)
    assert [(u.stage, u.rows) for u in found.updates] == [("a", (0, 2)), ("rerank", (3, 2))]
    with pytest.raises(AnnError, match="not one finite number for each passage"):
        list(RerankStage(NotANumber(), passages, 3).steps(QUESTION, Pool((0,), (0.0,))))
