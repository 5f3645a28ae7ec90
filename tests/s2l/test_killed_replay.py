"""A replay that is killed keeps its run: ``s2l report`` opens it, and its counts add up."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from s2l.exits import USAGE
from s2l.replayer.run import Run
from s2l.replayer.run_journal import read_batches

QUERIES = 20
FAST = ("--time-scale", "0.02", "--warmup", "0", "--no-calibrate", "--arrivals", "constant")

DYING = """
import os, signal, sys
from s2l.cli import run
from s2l.replayer import run_writer
from s2l.replayer.table_writer import TableWriter

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def finish(table, really=TableWriter.finish):
    really(table)
    if table._file._path.name == "requests.parquet":
        die()

moment = sys.argv[1]
if moment == "one table":
    TableWriter.finish = finish
elif moment == "no run.json":
    run_writer.durable_file = die
else:
    run_writer.RunWriter._drop_journal = die
sys.exit(run(sys.argv[2:]))
"""
"""Runs the program, and kills it at a moment of its end."""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "one"


@pytest.fixture
def command(mock_url: str, run: Path) -> list[str]:
    """Two passes of twenty requests, a second each."""
    trace = Path(__file__).parents[2] / "datasets" / "demo-crawl"
    options = ["--target", mock_url, "--qps", "20", "--queries", str(QUERIES), *FAST]
    return ["replay", str(trace), *options, "--out", str(run)]


def _events(process: "subprocess.Popen[str]") -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)
    pytest.fail("the replay came to its end")


def _written(run: Path) -> int:
    return sum(batch.num_rows for batch in read_batches(run, "requests"))


def _check(run: Path, known: int) -> None:
    """So many requests are known, and all that there is to count adds up."""
    info, rows = Run.open(run).info, Run.open(run).requests()
    counts, kinds = info.counts, rows["error_type"].to_pylist()
    assert info.validity.verdict == "invalid"
    killed = info.validity.findings[0]
    text = f"the replay was killed: {known} of {2 * QUERIES} requests are known"
    assert (killed.check, killed.text) == ("killed", text)
    assert (counts.planned, counts.sent, counts.succeeded) == (2 * QUERIES, known, known)
    assert counts.unsent == kinds.count("unsent") == 2 * QUERIES - known
    assert len(set(rows["request_id"].to_pylist())) == len(kinds) == 2 * QUERIES
    assert set(Run.open(run).chunks()["request_id"].to_pylist()) == set(
        rows["request_id"].to_pylist()
    )
    assert Run.open(run).queries().num_rows == QUERIES
    names = {file.name for file in run.iterdir()} - {"server.parquet"}
    assert names == {"report.html", "run.json"} | {
        f"{table}.parquet" for table in ("requests", "chunks", "client", "queries")
    }


Moment = Callable[[dict[str, Any], Path], bool]
MOMENTS: dict[str, Moment] = {
    "before the first batch": lambda event, _: event["event"] == "pass",
    "in the middle": lambda _, run: _written(run) >= 3,
    "in the second pass": lambda event, run: (
        event.get("name") == "wait" and _written(run) >= QUERIES
    ),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_while_it_went_on(
    program: str, command: list[str], run: Path, here: Any, moment: str
) -> None:
    with subprocess.Popen(
        [program, *command, "--json-events", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        next(event for event in _events(process) if _is_begun(run) and MOMENTS[moment](event, run))
        process.send_signal(signal.SIGSTOP)  # it is to die at this moment, and not soon after
        try:
            refused = here("report", run)
            assert (refused.code, refused.out) == (USAGE, "")
            assert refused.err == f"s2l: {run}: its replay is still under way; wait for its end\n"
            assert "no run in runs/" in here("report").err
        finally:
            process.kill()
    known = _written(run)
    assert known < 2 * QUERIES
    assert bool(known) == (moment != "before the first batch")
    told = here("report")
    assert told.code == 0
    assert f"runs/one: its replay was killed; recovered {known} requests" in told.err.splitlines()
    _check(run, known)
    passes = Run.open(run).info.passes
    assert [one.delivery for one in passes][:1] == ["stream"][: len(passes)]
    written = pq.read_table(run / "requests.parquet").to_pylist()
    first = min(row["start_intended_us"] for row in written)
    assert not passes or not known or passes[0].start_us == first
    again = here("report", run)
    assert (again.code, "killed; recovered" in again.err) == (0, False)
    assert pq.read_table(run / "requests.parquet").to_pylist() == written


def _is_begun(run: Path) -> bool:
    return (run / "journal" / "begun.json").is_file()


@pytest.mark.parametrize("moment", ["one table", "no run.json", "journal left"])
def test_killed_while_the_end_was_written(
    command: list[str], run: Path, here: Any, moment: str, tmp_path: Path
) -> None:
    dying = [sys.executable, "-c", DYING, moment, *command]
    ended = subprocess.run(dying, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    over = here("replay", *command[1:])
    assert over.code == USAGE
    if moment == "journal left":
        assert "was killed" not in here("report", run).err
        assert Run.open(run).info.counts.succeeded == 2 * QUERIES
        assert not (run / "journal").exists()
        return
    assert f"recover that run with: s2l report {run}" in over.err
    told = here("export", run, "--format", "csv", "--out", "rows.csv")
    assert told.code == 0
    assert f"recovered {2 * QUERIES} requests" in told.err
    assert here("report", run).code == 0
    _check(run, 2 * QUERIES)
    assert here("compare", run, run, "--json").code == 0
