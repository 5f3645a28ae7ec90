"""``s2l collect ann`` as a user calls it, with the packaged model."""

import json
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

from s2l.collecting import ann_capture
from s2l.collectors.ann.embedder import SentenceEmbedder
from s2l.collectors.ann.errors import AnnError
from s2l.collectors.ann.pool import Scores
from s2l.collectors.ann.rerank import CrossEncoderScorer
from s2l.commands.collect_ann import ann, newest_crawl
from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.file_lock import alone
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter

ANIMALS = ("The cat purrs when it is content.", "A dog wags its tail.", "Whales sing in the sea.")

Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, packaged: SentenceEmbedder, monkeypatch: pytest.MonkeyPatch) -> Run:
    """In a folder of its own; the model is loaded once for all tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SentenceEmbedder, "open", lambda *_, **__: packaged)
    rows = [{"doc_id": f"a{i}", "text": text} for i, text in enumerate(ANIMALS)]
    Path("animals.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    Path("q.jsonl").write_text('{"query": "Which animal purrs?"}\n{"query": "?!"}\n')

    def called(*arguments: str) -> int:
        common = ["--queries", "q.jsonl", "--cache", "cache"]
        code: int = ann.main([*common, *arguments], standalone_mode=False)
        return code

    return called


def crawl(path: Path, text: str, collector: str = "crawl") -> None:
    made_by = Collector(collector, "1")
    with TraceWriter.create(path, name="c", collector=made_by, licence="CC-BY-4.0") as writer:
        writer.add_query(Query("q", "?"))
        writer.add_document(Document.of_text(url="http://h/", title="T", text=text))
        writer.add_arrival(Arrival("q", 0, ArrivalKind.END, 0, 1))
        writer.finish()


def options_of(path: str) -> dict[str, Any]:
    return Trace.open(Path(path)).manifest.collector.options


def test_a_corpus_of_jsonl(run: Run, tmp_path: Path) -> None:
    assert run("animals.jsonl", "-k", "2", "--out", "t") == 0
    trace = Trace.open(Path("t"))
    asked, wordless = trace.retrievals()
    assert asked.arrivals[-2].doc_ids[0] == "a0#0"
    assert [a.status for a in wordless.arrivals] == ["no_words", "ok"]
    options = options_of("t")
    assert (options["documents"], options["passage_count"], options["dimension"]) == (3, 3, 384)
    assert options["recall"] == {"1": 1.0, "2": 1.0}
    assert options["latency"] == "measured"
    assert options["embedder"].startswith("all-MiniLM-L6-v2@")
    assert trace.manifest.counts.failures == {"no_words": 1}
    assert str(tmp_path) not in json.dumps(options)


@pytest.mark.parametrize("kind", ["ivf-disk", "hnsw"])
def test_other_indexes_and_stretched_times(run: Run, kind: str) -> None:
    assert run("animals.jsonl", "--index-type", kind, "--time-scale", "3", "--out", "t") == 0
    assert options_of("t")["time_scale"] == 3
    [*found, end] = next(Trace.open(Path("t")).retrievals()).arrivals
    assert found[-1].meta["shortfall"] == 2
    stretched_us = found[-1].arrival_us - found[0].meta["queued_us"]
    assert stretched_us == 3 * found[-1].meta["search_us"]
    assert end.arrival_us - found[0].meta["queued_us"] >= 3 * found[-1].meta["search_end_us"]


class Shortest:
    """Prefers short passages; tells what it was asked."""

    name = "shortest"

    def scores(self, question: str, texts: Sequence[str]) -> Scores:
        assert question == "Which animal purrs?"
        return np.array([-len(text) for text in texts], np.float32)


def test_reranking_is_the_last_stage(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CrossEncoderScorer, "open", lambda *_, **__: Shortest())
    Path("shortest").mkdir()
    more = ("-k", "1", "--rerank", "shortest", "--rerank-depth", "3", "--stop-when", "2")
    assert run("animals.jsonl", *more, "--out", "t") == 0
    first, second, _ = next(Trace.open(Path("t")).retrievals()).arrivals
    assert [(a.meta["stage"], a.doc_ids) for a in (first, second)] == [
        ("ivf", ("a0#0",)),
        ("rerank", ("a1#0",)),
    ]
    options = options_of("t")
    assert (options["reranker"], options["search"]["reranked"]) == ("shortest", 3)
    assert options["search"]["stop_when"] == 2


def test_passages_that_the_model_cannot_see_to_their_end_are_told_of(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("animals.jsonl", "--passage-tokens", "300", "--out", "t") == 0
    said = capsys.readouterr().err
    assert "passages of 300 tokens: the embedding model sees the first 254 of them" in said
    assert run("animals.jsonl", "--passage-tokens", "254", "--out", "u") == 0
    assert "sees the first" not in capsys.readouterr().err


def test_an_index_folder_is_kept_and_checked(run: Run) -> None:
    assert run("animals.jsonl", "--index", "i", "--out", "t") == 0
    written = Path("i/index.faiss").stat().st_mtime_ns
    assert run("animals.jsonl", "--index", "i", "--out", "u") == 0
    assert Path("i/index.faiss").stat().st_mtime_ns == written
    Path("more.jsonl").write_text(Path("animals.jsonl").read_text() + '{"text": "Cows moo."}\n')
    with pytest.raises(AnnError, match="the corpus or the model is another"):
        run("more.jsonl", "--index", "i", "--out", "v")
    assert run("more.jsonl", "--index", "i", "--rebuild", "--out", "v") == 0


def test_an_index_that_another_process_builds_is_waited_for(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("animals.jsonl", "--index", "theirs", "--out", "t") == 0
    said: list[str] = []
    held, waited = threading.Event(), threading.Event()

    def say(text: str) -> None:
        said.append(text)
        if text == "waiting: another process builds i":
            waited.set()

    def build() -> None:
        with alone(Path(".i.lock")):
            held.set()
            assert waited.wait(60)
            shutil.copytree("theirs", "i")

    monkeypatch.setattr(ann_capture, "say", say)
    builder = threading.Thread(target=build)
    builder.start()
    assert held.wait(60)
    assert run("animals.jsonl", "--index", "i", "--out", "u") == 0
    builder.join()
    assert waited.is_set()
    assert not [text for text in said if text.startswith("building")]


def test_the_newest_crawl_is_searched(run: Run) -> None:
    with pytest.raises(click.UsageError, match="no crawl in traces/; name a corpus, or make"):
        run()
    crawl(Path("traces/one"), "Cats purr.")
    crawl(Path("traces/two"), "Only pages of a crawl are taken.", collector="ann")
    Path("traces/three").mkdir()
    Path("traces/three/manifest.json").write_text("{}")
    assert newest_crawl(Path("traces")) == Path("traces/one")
    assert run() == 0
    [found] = Path("traces").glob("ann-*")
    assert Trace.open(found).manifest.licence == "CC-BY-4.0"
    assert options_of(str(found))["corpus"] == "one"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nprobe", "3", "--index-type", "hnsw"], "--nprobe is for --index-type ivf-flat or"),
        (["--ef-search", "3"], "--ef-search is for --index-type hnsw only"),
        (["--refine", "3"], "--refine is for --index-type ivf-pq only"),
        (["--rerank-depth", "9"], "--rerank-depth is for --rerank only"),
        (["--time-scale", "2", "--gaps", "stream2llm-anns"], "not both"),
        (["--time-scale", "0.5"], "give 1 or more"),
        (["--overlap-tokens", "100"], "give less than the passage's 100"),
        (["--gpu", "--index-type", "hnsw"], "hnsw has no GPU version"),
        (["--out", "."], "there already; name a new folder"),
        (["--nlist", "9"], "9 lists for 3 passages: give between 1 and 3"),
        (["--index-type", "ivf-pq"], "ivf-pq needs 256 passages or more"),
        (["--rerank", "no/such/model"], "no/such/model: no such folder; name one, or a model"),
    ],
)
def test_options_that_cannot_be_followed(run: Run, arguments: list[str], message: str) -> None:
    with pytest.raises((click.UsageError, AnnError), match=message) as error:
        run("animals.jsonl", *arguments)
    assert "\n" not in str(error.value)
    assert not list(Path().glob("traces/*"))


def test_help_lists_every_option() -> None:
    shown = CliRunner().invoke(ann, ["--help"]).output
    for option in ("--stop-when", "--gaps", "--time-scale", "--index-type", "--rerank", "CORPUS"):
        assert option in shown
