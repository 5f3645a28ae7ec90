"""Everything flushed survives: kill -9 at any moment, torn files, a full disk."""

import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import json
from msgspec.structs import replace

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.errors import NotATrace, TraceError
from s2l.workloads.query import Query
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import recover
from s2l.workloads.validation import validate
from s2l.workloads.wal import COMMITS, WAL, read_commits
from s2l.workloads.wal_reader import last_sound_commit

WRITE_FOR_EVER = """
import sys
from itertools import count
from pathlib import Path
from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.trace_writer import TraceWriter

writer = TraceWriter.create(Path(sys.argv[1]), name="t", collector=Collector("c", "1"), licence="x")
for n in count():
    page = Document.of_text(url=str(n), title="", text=f"text {n} " * 500)
    writer.add_document(page)
    writer.add_query(Query(f"q{n}", "?", offset_us=n))
    writer.add_arrival(Arrival(f"q{n}", 0, ArrivalKind.APPEND, 0, 1, (page.doc_id,)))
    writer.add_arrival(Arrival(f"q{n}", 1, ArrivalKind.END, 1, 2))
    writer.flush()
    print(n, flush=True)
"""

# Each fork kills itself just before the n-th file it opens, renames or removes in finish().
DIE_IN_FINISH = """
import os, signal, sys
from pathlib import Path
import pyarrow as pa
from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.trace_writer import TraceWriter

pa.array([["x"]])  # what Arrow loads lazily is loaded once, before the forks

def capture(path, step):
    writer = TraceWriter.create(path, name="t", collector=Collector("c", "1"), licence="x")
    page = Document.of_text(url="u", title="", text="text")
    writer.add_document(page)
    for n in range(3):
        writer.add_query(Query(f"q{n}", "?", offset_us=n))
        writer.add_arrival(Arrival(f"q{n}", 0, ArrivalKind.APPEND, 0, 1, (page.doc_id,)))
    writer.flush()
    left = step
    def watch(event, values):
        nonlocal left
        if event in ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"):
            if str(path) in str(values[0]) or event in ("os.remove", "os.rmdir"):
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(watch)
    writer.finish()
    os._exit(0)

for step in range(1000):
    child = os.fork()
    if child == 0:
        capture(Path(sys.argv[1]) / str(step), step)
    _, status = os.waitpid(child, 0)
    if status == 0:
        print(step)
        break
    assert os.WTERMSIG(status) == signal.SIGKILL, status
"""


@pytest.mark.parametrize("flushes", [1, 6, 60])
def test_kill_while_capturing(tmp_path: Path, flushes: int) -> None:
    path = tmp_path / "t"
    command = [sys.executable, "-c", WRITE_FOR_EVER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        seen = [int(child.stdout.readline()) for _ in range(flushes)][-1]
        child.send_signal(signal.SIGKILL)
        seen = max([seen, *(int(line) for line in child.stdout)])
    manifest = recover(path)
    assert manifest.counts.queries >= seen + 1
    retrievals = list(Trace.open(path).retrievals())
    assert [one.query.query_id for one in retrievals[: seen + 1]] == [
        f"q{n}" for n in range(seen + 1)
    ]
    assert all(one.finished for one in retrievals[: seen + 1])
    assert validate(path) == []


def test_kill_anywhere_in_finish(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DIE_IN_FINISH, str(tmp_path)]
    steps = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert steps > 20
    unfinished = 0
    for step in range(steps):
        path = tmp_path / str(step)
        unfinished += not (path / "manifest.json").exists()
        manifest = recover(path)
        assert (manifest.counts.arrivals, manifest.counts.documents) == (3, 1), step
        assert validate(path) == []
        assert not list(path.rglob("*.tmp"))
        assert not (path / "wal").exists()
        trace = Trace.open(path)
        assert [one.query_id for one in trace.arrivals()] == ["q0", "q1", "q2"]
    assert unfinished > 15


@pytest.fixture
def unfinished(tmp_path: Path, small: Any) -> Path:
    """Two flushes: the small trace, then one more query with one arrival."""
    path = tmp_path / "unfinished"
    with small.create(path) as writer:
        small.fill(writer)
        writer.flush()
        writer.add_query(Query("q-e", "last", offset_us=10**6))
        writer.add_arrival(Arrival("q-e", 0, ArrivalKind.END, 0, 1))
    return path


@pytest.mark.parametrize("name", ["queries", "arrivals"])
def test_a_torn_last_batch_is_dropped(unfinished: Path, tmp_path: Path, name: str) -> None:
    log = Path("wal") / f"{name}.arrows"
    size = (unfinished / log).stat().st_size
    for cut in (1, 5, 64, 200):
        copy = tmp_path / f"cut{cut}"
        shutil.copytree(unfinished, copy)
        with (copy / log).open("r+b") as file:
            file.truncate(size - cut)
        assert recover(copy).counts.arrivals == 8
        assert validate(copy) == []


@pytest.mark.parametrize("rest", [b"\xff\xff\xff\xff\x10", b"\0" * 4096, b"\xff" * 300])
def test_a_write_that_did_not_end_is_ignored(unfinished: Path, rest: bytes) -> None:
    for name in ("queries", "documents", "arrivals"):
        with (unfinished / "wal" / f"{name}.arrows").open("ab") as file:
            file.write(rest)
    with (unfinished / "wal" / "commits.jsonl").open("ab") as file:
        file.write(b"[99999,99")
    assert recover(unfinished).counts.arrivals == 9
    assert validate(unfinished) == []


def test_any_length_of_the_commits_is_survived(unfinished: Path, tmp_path: Path) -> None:
    data = (unfinished / "wal" / "commits.jsonl").read_bytes()
    found = []
    for length in range(data.index(b"\n") + 1, len(data) + 1):
        copy = tmp_path / f"length{length}"
        shutil.copytree(unfinished, copy)
        (copy / "wal" / "commits.jsonl").write_bytes(data[:length])
        found.append(recover(copy).counts.arrivals)
    assert found == sorted(found)
    assert set(found) == {0, 8, 9}


def test_rows_without_any_commit_are_not_guessed_at(unfinished: Path) -> None:
    (unfinished / "wal" / "commits.jsonl").write_bytes(b"")
    with pytest.raises(NotATrace, match="rows but no readable commit"):
        recover(unfinished)


@pytest.mark.parametrize("files", [[], ["queries.arrows"], ["queries.arrows", "commits.jsonl"]])
def test_a_capture_that_died_at_its_start(tmp_path: Path, small: Any, files: list[str]) -> None:
    path = tmp_path / "t"
    with small.create(path):
        pass
    for file in (path / "wal").iterdir():
        if file.name not in ("header.json", *files):
            file.unlink()
        elif file.name != "header.json":
            file.write_bytes(b"")
    assert recover(path).counts.queries == 0


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Files of this process cannot grow beyond ``size`` bytes: a disk that is full."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_commit_of_half_a_write_is_none(tmp_path: Path, small: Any) -> None:
    """The disk refused its line, took a larger write after it, and the process died."""
    path = tmp_path / "t"
    with small.create(path) as writer:
        writer.add_query(Query("q0", "?"))
        writer.flush()
        whole = read_commits(path)[-1]
        writer.add_query(Query("q1", "?" * 5000))
        writer.flush()
    torn = replace(whole, queries=whole.queries + 8)
    (path / WAL / COMMITS).write_bytes(
        b"".join(json.encode(commit) + b"\n" for commit in (whole, torn))
    )
    assert last_sound_commit(path) == whole
    assert recover(path).counts.queries == 1
    assert [query.query_id for query in Trace.open(path).queries()] == ["q0"]


def test_a_full_disk_while_capturing_keeps_all(tmp_path: Path, small: Any) -> None:
    path = tmp_path / "t"
    with small.create(path) as writer:
        small.fill(writer)
        writer.flush()
        writer.add_query(Query("q-e", "x" * 100_000, offset_us=10**6))
        with largest_file(20_000):
            for _ in range(2):
                with pytest.raises(TraceError, match="File too large; what was flushed before"):
                    writer.flush()
        copy = tmp_path / "copy"
        shutil.copytree(path, copy)
        assert recover(copy).counts.arrivals == 8
        assert writer.finish().counts.queries == 5
    assert validate(path) == []


def test_a_full_disk_in_finish_stays_recoverable(tmp_path: Path, small: Any) -> None:
    path = tmp_path / "t"
    with small.create(path) as writer:
        small.fill(writer)
        writer.flush()
        with largest_file(1_000), pytest.raises(TraceError, match="File too large") as caught:
            writer.finish()
    assert str(path) in str(caught.value)
    with largest_file(1_000), pytest.raises(TraceError, match="nothing is lost, try again"):
        recover(path)
    assert recover(path).counts.arrivals == 8
    assert list(Trace.open(path).arrivals()) == small.ARRIVALS


def test_a_full_disk_does_not_hide_the_first_error(tmp_path: Path, small: Any) -> None:
    first = ZeroDivisionError("first")
    writer = small.create(tmp_path / "t")
    writer.add_query(Query("q", "x" * 100_000))
    with largest_file(20_000):
        writer.__exit__(type(first), first, None)
    assert ["File too large" in note for note in first.__notes__] == [True]
    assert recover(tmp_path / "t").counts.queries == 0


def test_a_full_disk_on_leaving_is_told(tmp_path: Path, small: Any) -> None:
    writer = small.create(tmp_path / "t")
    writer.add_query(Query("q", "x" * 100_000))
    with largest_file(20_000), pytest.raises(TraceError, match="File too large"):
        writer.__exit__(None, None, None)
    assert recover(tmp_path / "t").counts.queries == 0
