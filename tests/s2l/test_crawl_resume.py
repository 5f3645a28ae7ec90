"""One crawl, killed again and again and resumed each time, ends as if nothing had happened."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import count, islice
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from s2l.exits import INTERRUPTED, USAGE
from s2l.workloads.trace import Trace
from s2l.workloads.validation import validate

QUESTIONS = Path(__file__).parents[2] / "datasets" / "pydocs" / "queries.jsonl"
CRAWL = [sys.executable, "-m", "s2l", "collect", "crawl"]


def _questions(folder: Path, n: int) -> Path:
    """``n`` of the shipped questions, again under different ids when these are used up."""
    lines = QUESTIONS.read_text().splitlines()
    file = folder / "questions.jsonl"
    copies = (
        line.replace('"pydocs-', f'"{copy}-pydocs-') + "\n" for copy in count() for line in lines
    )
    file.write_text("".join(islice(copies, n)))
    return file


def _pages(path: Path) -> Counter[tuple[str, str, str]]:
    """Each arrived page by query, path on the site and hash of its text."""
    trace = Trace.open(path)
    documents = {document.doc_id: document for document in trace.documents()}
    return Counter(
        (a.query_id, urlsplit(documents[doc_id].url).path, documents[doc_id].text_sha256)
        for a in trace.arrivals()
        for doc_id in a.doc_ids
    )


def _begin(trace: Path, questions: Path, speed: int) -> list[str]:
    options = ["--queries", str(questions), "--speed", str(speed), "--concurrency", "4"]
    return [*CRAWL, *options, "--out", str(trace)]


def _kill_after(command: list[str], delay_s: float) -> bool:
    """Run until ``delay_s`` after the first query was asked; whether it was still running."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("crawl: "):
                break
        time.sleep(delay_s)  # the moment is what is tested, not something waited for
        process.send_signal(signal.SIGKILL)
        return process.wait() == -signal.SIGKILL


def _kill_again_and_again(folder: Path, kills: int, n: int, longest_s: float) -> None:
    questions, moments = _questions(folder, n), random.Random(20)
    whole, trace = folder / "whole", folder / "trace"
    subprocess.run(_begin(whole, questions, 50), check=True, capture_output=True)
    command = _begin(trace, questions, 50)
    for _ in range(kills):
        assert _kill_after(command, moments.uniform(0, longest_s)), "finished before the kill"
        assert not (trace / "manifest.json").exists()
        command = [*CRAWL, "--resume", str(trace)]
    subprocess.run(command, check=True, capture_output=True)
    assert [problem.message for problem in validate(trace)] == []
    pages = _pages(trace)
    assert pages == _pages(whole)
    assert set(pages.values()) == {1}
    counts = Trace.open(trace).manifest.counts
    assert (counts.queries, counts.finished_queries) == (n, n)
    assert counts.documents == Trace.open(whole).manifest.counts.documents


def test_a_crawl_killed_twice_has_the_pages_of_an_uninterrupted_one(tmp_path: Path) -> None:
    _kill_again_and_again(tmp_path, kills=2, n=16, longest_s=0.4)


@pytest.mark.slow
def test_a_crawl_killed_twenty_times_has_the_pages_of_an_uninterrupted_one(tmp_path: Path) -> None:
    _kill_again_and_again(tmp_path, kills=20, n=400, longest_s=0.6)


def test_an_interrupted_crawl_finishes_what_it_has_begun(  # type: ignore[no-untyped-def]
    here, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    command = _begin(trace, _questions(tmp_path, 40), 10)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if line.startswith("crawl: "):
                process.send_signal(signal.SIGINT)
        assert process.wait() == INTERRUPTED
    assert said[-2].startswith("stopping: queries under way are finished first")
    assert said[-1] == f"interrupted; go on with: s2l collect crawl --resume {trace}\n"
    assert here("dataset", "recover", trace).code == 0
    counts = Trace.open(trace).manifest.counts
    assert counts.queries == counts.finished_queries == 4


def test_what_cannot_be_resumed_is_one_line(here) -> None:  # type: ignore[no-untyped-def]
    for options, says in (
        (["--resume", "none"], "no such trace folder"),
        (["--resume", "none", "--hits", "3"], "leave out --hits"),
        (["--resume", "none", "-n", "3"], "leave out -n"),
    ):
        result = here("collect", "crawl", *options)
        assert (result.code, result.err.count("\n")) == (USAGE, 1), result.err
        assert says in result.err
