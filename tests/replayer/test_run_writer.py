"""Runs are written while they go on: in little memory, and onto disks that fill up."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from s2l.replayer.disk_file import DiskFile
from s2l.replayer.monitor import ClientSample
from s2l.replayer.planned_passes import PlannedPasses
from s2l.replayer.record import RequestRecord
from s2l.replayer.run import REQUEST_SCHEMA, RunError
from s2l.replayer.run_journal import RunJournal
from s2l.replayer.run_writer import RunNotWritten, RunWriter
from s2l.replayer.token_fill import fill_output_tokens
from s2l.serving_adapter.base import Usage
from s2l.workloads.query import Query

sys.path.insert(0, str(Path(__file__).parent))
from begun_run import QUERY, begun

BEGUN = begun(0)


def _writer(
    path: Path, queries: Sequence[Query] = (Query("q", "What?", ("a",)),), **told: Any
) -> RunWriter:
    return RunWriter(path, BEGUN, PlannedPasses.of([], open_ended=True), queries, **told)


def _record(number: int, *, text: str = "word " * 8) -> RequestRecord:
    start = number * 1000
    return RequestRecord(
        request_id=f"stream-{number:05d}",
        query=QUERY,
        delivery="stream",
        number=number,
        start_intended_us=start,
        start_us=start + 1,
        context_us=start + 11,
        sent_us=[start + 6],
        prefilled_us=[None],
        token_us=[start + 20 + i for i in range(32)],
        token_n=[1] * 32,
        texts=[text],
        usage=Usage(50, 0, 32),
        finish_reason="length",
        error_type=None,
        end_us=start + 60,
    )


def _table(path: Path, name: str) -> list[dict[str, object]]:
    import pyarrow.parquet as pq

    rows: list[dict[str, object]] = pq.read_table(path / name).to_pylist()
    return rows


def test_rows_are_what_was_put(tmp_path: Path) -> None:
    counted: list[RequestRecord] = []
    writer = _writer(tmp_path / "run", on_record=counted.append)
    sample = ClientSample("stream", None, 5, 1, 0.5, 1000, 3, 2)
    writer.put([_record(n) for n in range(300)], [sample])
    writer.put([_record(300)], [])
    unsent = RequestRecord("stream-00301", QUERY, "stream", 301, 301_000)
    writer.finish([unsent])
    assert len(counted) == 301
    rows = _table(tmp_path / "run", "requests.parquet")
    assert list(rows[0]) == REQUEST_SCHEMA.names
    assert [row["request_id"] for row in rows] == [f"stream-{n:05d}" for n in range(302)]
    assert rows[1]["token_us"] == [1020 + i for i in range(32)]
    assert (rows[1]["first_token_us"], rows[1]["last_token_us"]) == (1020, 1051)
    assert (rows[1]["output_tokens"], rows[1]["token_source"]) == (32, "usage")
    assert (rows[301]["error_type"], rows[301]["token_us"]) == ("unsent", [])
    assert rows[301]["context_intended_us"] == 301_010
    chunks = _table(tmp_path / "run", "chunks.parquet")
    assert (chunks[2]["sent_us"], chunks[2]["send_intended_us"]) == (2006, 2005)
    assert chunks[301]["sent_us"] is None
    assert _table(tmp_path / "run", "client.parquet")[0]["gc_pause_us"] == 3
    assert _table(tmp_path / "run", "queries.parquet")[0]["answers"] == ["a"]
    assert not [file for file in (tmp_path / "run").iterdir() if file.suffix == ".tmp"]
    writer.write_info(BEGUN)
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == [
        "chunks.parquet",
        "client.parquet",
        "queries.parquet",
        "requests.parquet",
        "run.json",
    ]


_MANY = """
import sys, time
from pathlib import Path
import psutil
sys.path.insert(0, str(Path(sys.argv[2])))
from test_run_writer import _record, _writer
from s2l.replayer.ledger import Ledger
from s2l.replayer.tally import PassTally

ledger = Ledger([])
ledger.tallies["stream", None] = PassTally("stream", "stream")
writer = _writer(Path(sys.argv[1]), on_record=ledger.add)
sizes = []
for batch in range(1200):
    writer.put([_record(batch * 250 + n) for n in range(250)], [])
    while writer._queue.qsize() > 4:
        time.sleep(0.001)
    sizes.append(psutil.Process().memory_info().rss)
writer.finish([])
print((max(sizes[-400:]) - max(sizes[400:800])) / 100_000)
"""


@pytest.mark.slow
def test_memory_grows_by_some_bytes_a_request(tmp_path: Path) -> None:
    """A record of 32 tokens takes some 4,000 bytes; what is left of it, under 100."""
    command = [sys.executable, "-c", _MANY, str(tmp_path / "run"), str(Path(__file__).parent)]
    found = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    assert float(found.stdout) < 100


class _Words:
    """Counts tokens as a server would that has one for each word."""

    async def count_tokens(self, texts: list[str]) -> list[int]:
        return [len(text.split()) for text in texts]


async def test_tokens_that_the_server_did_not_say_are_counted(tmp_path: Path) -> None:
    writer = _writer(tmp_path)
    silent, failed = _record(1), _record(2)
    silent.usage = failed.usage = None
    failed.error_type = "timeout"
    writer.put([_record(0), silent, failed], [])
    writer.finish([])
    assert await fill_output_tokens(tmp_path, _Words()) == 1  # type: ignore[arg-type]
    rows = _table(tmp_path, "requests.parquet")
    assert [row["output_tokens"] for row in rows] == [32, 8, None]
    assert [row["token_source"] for row in rows] == ["usage", "tokenizer", None]
    assert [row["token_us"] for row in rows][1] == silent.token_us


async def test_a_table_that_cannot_be_rewritten_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = _writer(tmp_path)
    silent = _record(0)
    silent.usage = None
    writer.put([silent], [])
    writer.finish([])
    before = _table(tmp_path, "requests.parquet")
    _Disk(monkeypatch, 0)
    with pytest.raises(RunError, match="cannot be rewritten: No space left on device"):
        await fill_output_tokens(tmp_path, _Words())  # type: ignore[arg-type]
    assert _table(tmp_path, "requests.parquet") == before
    assert not list(tmp_path.glob("*.tmp"))


class _Disk:
    """A disk that refuses after so many bytes, until room is made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
        self.room = room
        self._write = os.write
        monkeypatch.setattr(os, "write", self.write)

    def write(self, descriptor: int, data: memoryview) -> int:
        if self.room <= 0:
            raise OSError(28, "No space left on device")
        taken = self._write(descriptor, data[: self.room])
        self.room -= taken
        return taken


def test_a_write_is_taken_up_where_the_disk_refused_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = _Disk(monkeypatch, 5)

    def make_room(error: OSError) -> bool:
        disk.room = 100
        return error.errno == 28

    file = DiskFile(tmp_path / "file", make_room)
    file.write(b"hello ")
    file.write(b"world")
    file.commit()
    assert (tmp_path / "file").read_bytes() == b"hello world"


def _full_disk(tmp_path: Path) -> Path:
    """A small file system of its own; skipped where one cannot be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no mount program")
    if done.returncode:
        pytest.skip(f"no file system of its own for this test: {done.stderr.strip()}")
    return folder


def test_a_full_disk_keeps_what_was_measured(tmp_path: Path) -> None:
    folder = _full_disk(tmp_path)
    try:
        told: list[str] = []
        writer = _writer(folder / "run", on_disk_full=lambda: told.append("full"))
        assert (folder / "run" / "journal" / "begun.json").is_file()
        number = 0
        while not told:
            writer.put([_record(number + n, text=os.urandom(800).hex()) for n in range(100)], [])
            number += 100
            while writer._queue.qsize() > 2:
                pass
        assert not (folder / "run" / "journal").exists()
        writer.finish([])
        writer.write_info(BEGUN)
        assert writer.journal_lost == "No space left on device"
        assert writer.disk_full == "No space left on device"
        rows = _table(folder / "run", "requests.parquet")
        assert len(rows) == number
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_run_goes_on_without_its_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunJournal, "append", refuse)
    told: list[str] = []
    writer = _writer(tmp_path / "run", on_disk_full=lambda: told.append("full"))
    writer.put([_record(n) for n in range(100)], [])
    writer.finish([])
    assert (writer.journal_lost, writer.disk_full) == ("No space left on device", None)
    assert not told
    assert not (tmp_path / "run" / "journal").exists()
    assert len(_table(tmp_path / "run", "requests.parquet")) == 100


def test_a_disk_that_is_full_before_is_said_at_once(tmp_path: Path) -> None:
    folder = _full_disk(tmp_path)
    try:
        (folder / "other").write_bytes(bytes(4 * 2**20))
        with pytest.raises(RunNotWritten, match="No space left"):
            _writer(folder / "run")
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    first = _writer(tmp_path / "run")
    with pytest.raises(RunNotWritten, match="another replay writes its run there"):
        _writer(tmp_path / "run")
    first.put([_record(0)], [])
    first.finish([])
    assert len(_table(tmp_path / "run", "requests.parquet")) == 1


def test_a_run_that_cannot_begin_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(os.listdir("/proc/self/fd"))

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("s2l.replayer.run_writer.RunJournal", refuse)
    with pytest.raises(RunNotWritten, match="No space left on device"):
        _writer(tmp_path / "run")
    assert list((tmp_path / "run").iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == before
