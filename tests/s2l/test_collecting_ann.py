"""A vector search by several workers finds what one finds."""

import asyncio
import json
import sys
import threading
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest

from s2l.collecting.ann import AnnJob, ann_with, with_searches
from s2l.collecting.ann_capture import Opened, ann_into, open_ann, searcher_of
from s2l.collecting.ann_options import AnnOptions
from s2l.collecting.crew import ScaledCapture
from s2l.collecting.watch import Watch
from s2l.collectors.ann.errors import AnnError
from s2l.collectors.ann.index_settings import IndexSettings, SearchSettings
from s2l.collectors.ann.latency import AsMeasured
from s2l.collectors.ann.passages import PassageSettings
from s2l.collectors.ann.preparing import Corpus
from s2l.collectors.ann.progressive_search import ProgressiveSearch
from s2l.collectors.ann.searchers import ProcessSearcher, ThreadSearcher
from s2l.scale import Scale
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.trace import Trace
from s2l.workloads.validation import validate

sys.path.insert(0, str(Path(__file__).parent))
from thread_crew import InThreads, ThreadCrew

WORDS = ("bread", "planets", "violins", "rivers", "glaciers", "chess", "volcanoes", "honey")
QUERIES = [Query(f"q{n}", f"what is known of {word}?") for n, word in enumerate(WORDS[:5])]


@pytest.fixture
def options(tmp_path: Path) -> AnnOptions:
    rows = [
        {"doc_id": f"{word}-{n}", "text": f"Fact {n} about {word}: they are number {n}."}
        for word in WORDS
        for n in range(4)
    ]
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return AnnOptions(
        corpus=corpus,
        cache=tmp_path / "cache",
        passages=PassageSettings(100, 20),
        indexed=IndexSettings(kind="ivf-flat", lists=4),
        search=SearchSettings(k=3),
        gaps="stream2llm-anns",
        concurrency=10,  # all at once, also of two workers: what is drawn lasts seconds
    )


def _updates(trace: Trace) -> dict[str, list[tuple[object, ...]]]:
    """By query what was found, one after the other."""
    return {
        one.query.query_id: [(a.kind, a.doc_ids, a.meta["stage"]) for a in one.arrivals[:-1]]
        for one in trace.retrievals()
        if one.finished
    }


async def test_two_workers_find_what_one_finds(options: AnnOptions, tmp_path: Path) -> None:
    opened = open_ann(QUERIES, options)
    assert await ann_into(tmp_path / "one", QUERIES, opened, options, licence="CC0-1.0")
    scale = InThreads(2)
    outcome = await ann_with(
        scale,
        tmp_path / "two",
        QUERIES,
        with_searches(options, scale, None),
        collector=opened.collector,
        licence="CC0-1.0",
    )
    assert outcome.finished
    assert [problem.message for problem in validate(tmp_path / "two")] == []
    one, two = (Trace.open(tmp_path / name) for name in ("one", "two"))
    found = _updates(one)
    assert set(found) == {query.query_id for query in QUERIES}
    assert _updates(two) == found
    recorded = {**one.manifest.collector.options, "workers": 2, "clock_error_us": 0}
    assert two.manifest.collector.options == recorded
    assert len(list((tmp_path / "cache" / "indexes").glob("[!.]*"))) == 1


async def test_a_machine_without_the_corpus_is_named(options: AnnOptions, tmp_path: Path) -> None:
    elsewhere = replace(options, corpus=tmp_path / "not there")
    job = AnnJob(tuple(QUERIES), (), elsewhere, "CC0-1.0")
    with pytest.raises(AnnError, match="every machine of the cluster needs the corpus"):
        await job.capture(tmp_path / "part", Watch())


def test_each_worker_searches(options: AnnOptions) -> None:
    assert with_searches(options, Scale(3), None).searches == 3
    assert with_searches(options, Scale(1), None).searches == 1
    assert with_searches(replace(options, searches=5), Scale(3), 5).searches == 5
    on_gpu = replace(options, gpu=True)
    assert with_searches(on_gpu, Scale(3), None) == on_gpu
    with pytest.raises(click.UsageError, match="more than --searches allows, which is 2"):
        with_searches(options, Scale(3), 2)


def test_what_is_on_a_gpu_is_searched_by_threads(options: AnnOptions) -> None:
    """A process that was forked cannot use a GPU."""
    nothing = Corpus((), np.zeros((0, 2), np.float32), "")
    opened = Opened(nothing, {}, ProgressiveSearch((), 3), AsMeasured(), Collector("ann", "1"))
    on_gpu = replace(options, gpu=True)
    reranked = replace(options, reranker="someone/reranker", device="cuda")
    assert isinstance(searcher_of(opened, on_gpu), ThreadSearcher)
    assert isinstance(searcher_of(opened, reranked), ThreadSearcher)
    for given in (options, replace(options, device="cuda"), replace(reranked, device="cpu")):
        assert isinstance(searcher_of(opened, given), ProcessSearcher)
    assert on_gpu.recorded()["index"]["gpu"] is True
    assert options.recorded()["index"]["gpu"] is False


class SlowCrew(ThreadCrew):
    """Hires when it is told to go on."""

    def __init__(self) -> None:
        super().__init__(1)
        self.asked, self.go_on = threading.Event(), threading.Event()

    def hire(self, kind: type, *args: object) -> None:
        self.asked.set()
        assert self.go_on.wait(10)
        super().hire(kind, *args)


async def test_an_interruption_waits_until_the_workers_are_hired(tmp_path: Path) -> None:
    """What hires for a crew that is closed meanwhile makes Ray start anew, or die."""
    crew = SlowCrew()
    preparing = asyncio.create_task(ScaledCapture(crew, tmp_path, "token").prepare([]))
    assert await asyncio.to_thread(crew.asked.wait, 10)
    preparing.cancel()
    done, _ = await asyncio.wait([preparing], timeout=0.05)
    assert not done
    crew.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await preparing
    assert len(crew.objects) == 1
