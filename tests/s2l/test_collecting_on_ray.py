"""Collecting on several processes, as a user does it."""

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from s2l.exits import FAILED, INTERRUPTED, USAGE
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import recover
from s2l.workloads.validation import validate

QUESTIONS = Path(__file__).parents[2] / "datasets" / "pydocs" / "queries.jsonl"
START_S = 120


def _crawl(out: Path, n: int, speed: int, *options: str) -> list[str]:
    given = ["--queries", str(QUESTIONS), "-n", str(n), "--speed", str(speed), *options]
    return [sys.executable, "-m", "s2l", "collect", "crawl", *given, "--out", str(out)]


def _contents(path: Path) -> dict[str, Counter[tuple[str, str, str, str]]]:
    """By query: kind and status of each arrival, path on the site and hash of its text. In which
    order pages come is a matter of milliseconds, in one process as in several."""
    trace = Trace.open(path)
    documents = {document.doc_id: document for document in trace.documents()}
    return {
        one.query.query_id: Counter(
            (
                arrival.kind.value,
                arrival.status,
                "".join(urlsplit(documents[doc].url).path for doc in arrival.doc_ids),
                "".join(documents[doc].text_sha256 for doc in arrival.doc_ids),
            )
            for arrival in one.arrivals
        )
        for one in trace.retrievals()
    }


def _capturing(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    """The workers of a program, once the first page has come."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("crawl: ") and "0.0 pages/s" not in line:
            break
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if any("CaptureWorker" in w for w in child.cmdline())]


def _start(command: list[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)


def test_two_workers_crawl_what_one_does(crawled: Path, tmp_path: Path) -> None:
    one, two = crawled, tmp_path / "two"
    done = subprocess.run(_crawl(two, 4, 50, "--workers", "2"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [problem.message for problem in validate(two)] == []
    assert _contents(two) == _contents(one)
    made, again = (Trace.open(path).manifest for path in (one, two))
    assert again.counts == made.counts
    assert (again.collector.options["workers"], again.collector.options["clock_error_us"]) == (2, 0)
    assert "crawl: 4/4" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["two"]


def test_two_workers_import_what_one_does(  # type: ignore[no-untyped-def]
    s2l, here, tmp_path: Path
) -> None:
    rows = [{"timestamp": n, "input_length": 40 + n, "output_length": 2} for n in range(30)]
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows) + "bad\n")
    command = ("dataset", "import", "rows.jsonl", "--format", "mooncake", "--json", "--out")
    one, two = here(*command, "one"), s2l(*command, "two", "--workers", "2")
    assert (one.code, two.code) == (0, 0), two.err
    facts: list[dict[str, Any]] = [one.json(), two.json()]
    assert [fact.pop("trace") for fact in facts] == ["one", "two"]
    bad = [fact.pop("bad") for fact in facts]
    assert [(row["line"], Path(row["file"]).name) for row in bad[1]] == [(31, "rows.jsonl")]
    assert facts[0] == facts[1]
    files = [Trace.open(tmp_path / name).manifest.files for name in ("one", "two")]
    assert files[0] == files[1]


@pytest.mark.slow
def test_what_a_killed_worker_had_captured_is_kept(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with _start(_crawl(trace, 40, 5, "--workers", "2")) as process:
        workers = _capturing(process)
        assert len(workers) == 2
        workers[0].kill()
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait(START_S) == FAILED, said
    assert f"(process {workers[0].pid} on " in said
    assert re.search(r"not finished: \d+ quer(?:y|ies) \(pydocs-0", said)
    assert said.endswith(f"go on with: s2l collect crawl --resume {trace}\n")
    go_on = [sys.executable, "-m", "s2l", "collect", "crawl", "--resume", str(trace)]
    done = subprocess.run(go_on, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [problem.message for problem in validate(trace)] == []
    counts = Trace.open(trace).manifest.counts
    assert (counts.queries, counts.finished_queries, counts.failures) == (40, 40, {})


@pytest.mark.slow
def test_ctrl_c_drains_all_workers(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with _start(_crawl(trace, 40, 5, "--workers", "2")) as process:
        _capturing(process)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to everyone in front
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait(START_S) == INTERRUPTED, said
    assert said.endswith(f"interrupted; go on with: s2l collect crawl --resume {trace}\n")
    counts = recover(trace).counts
    assert 8 <= counts.queries == counts.finished_queries < 40


def test_without_ray_it_is_said_how_to_install_it(  # type: ignore[no-untyped-def]
    s2l, tmp_path: Path
) -> None:
    (tmp_path / "ray.py").write_text("raise ModuleNotFoundError('No module named ray')")
    (tmp_path / "rows.jsonl").write_text('{"timestamp": 0, "input_length": 4, "output_length": 1}')
    result = s2l(
        *("dataset", "import", "rows.jsonl", "--format", "mooncake", "--workers", "2"),
        environment={"PYTHONPATH": str(tmp_path)},
    )
    assert result.code == USAGE
    assert result.message == "s2l: Ray is not installed: pip install 's2l[ray]'"
    assert not (tmp_path / "traces").exists()


def test_more_workers_than_a_site_is_to_be_asked_by_are_refused(here) -> None:  # type: ignore[no-untyped-def]
    options = ("--search", "urls", "--workers", "3", "--queries", QUESTIONS)
    result = here("collect", "crawl", *options)
    assert result.code == USAGE
    says = "--workers 3 take one each at least: more than --per-site allows, which is 2"
    assert says in result.message
    few = ("--workers", "3", "--queries", QUESTIONS, "--concurrency", "2")
    for command in (("crawl",), ("ann", QUESTIONS.parent)):
        result = here("collect", *command, *few)
        assert result.code == USAGE
        assert "more than --concurrency allows, which is 2" in result.message
