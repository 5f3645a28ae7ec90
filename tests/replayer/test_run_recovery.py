"""What is read back of the journal of a killed run, wherever it is torn."""

import shutil
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from s2l.replayer.monitor import ClientSample
from s2l.replayer.passes import Pass
from s2l.replayer.planned_passes import PlannedPasses
from s2l.replayer.record import UNSENT, RequestRecord
from s2l.replayer.run import (
    Counts,
    PassWindow,
    Run,
    RunError,
    RunInfo,
)
from s2l.replayer.run_journal import log_path, read_batches
from s2l.replayer.run_recovery import StillWritten, recover_run, was_killed
from s2l.replayer.run_writer import BATCH_ROWS, RunNotWritten, RunWriter
from s2l.workloads.query import Query

sys.path.insert(0, str(Path(__file__).parent))
from begun_run import QUERY, begun

N = 200
START_US = 5_000
PASSES = [
    Pass("r", delivery, None, 1.0, (QUERY,), np.arange(N), np.arange(N) * 100)
    for delivery in ("stream", "wait")
]
BEGUN = begun(2 * N)


def _ended(number: int) -> RequestRecord:
    record = PASSES[0].record(number, START_US)
    record.start_us, record.end_us = record.start_intended_us, record.start_intended_us + 60
    record.error_type = "timeout" if number % 10 == 0 else None
    return record


def _begin(path: Path, *, open_ended: bool = False) -> RunWriter:
    planned = PlannedPasses.of(PASSES, open_ended=open_ended)
    info = begun(0) if open_ended else BEGUN
    return RunWriter(path, info, planned, [Query("q", "What?")])


def _journaled(run: Path, records: int, *, open_ended: bool = False) -> Path:
    """A copy of a run that is written until its journal holds so many: as a killed one leaves."""
    writer = _begin(run, open_ended=open_ended)
    sample = ClientSample("stream", None, START_US - 50, 1, 0.5, 1000)
    for first in range(0, records, BATCH_ROWS):
        some = [_ended(n) for n in range(first, min(records, first + BATCH_ROWS))]
        writer.put(some, [sample])
    until_s = time.monotonic() + 20
    while sum(batch.num_rows for batch in read_batches(run, "client")) * BATCH_ROWS < records:
        assert writer.journal_lost is None
        assert time.monotonic() < until_s
        time.sleep(0.005)
    return Path(shutil.copytree(run, run.with_name("killed")))


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A run of which three batches, 150 requests, were written."""
    return _journaled(tmp_path / "run", 150)


def _check(run: Path, known: int) -> RunInfo:
    info = recover_run(run)
    failed = len(range(0, known, 10))
    counts = Counts(
        planned=2 * N,
        sent=known,
        succeeded=known - failed,
        unsent=2 * N - known,
        failed={"timeout": failed} if failed else {},
    )
    assert info.counts == counts
    assert (info.validity.verdict, info.validity.findings[0].check) == ("invalid", "killed")
    rows = Run.open(run).requests()
    kinds = Counter(rows["error_type"].to_pylist())
    assert kinds == Counter({None: known - failed, "timeout": failed, UNSENT: 2 * N - known})
    assert rows["request_id"].to_pylist()[:known] == [f"stream-{n:05d}" for n in range(known)]
    assert Run.open(run).chunks()["request_id"].to_pylist() == rows["request_id"].to_pylist()
    return info


def test_all_that_was_written_is_known(killed: Path) -> None:
    info = _check(killed, 150)
    end_us = START_US + 149 * 100 + 60
    assert info.passes == [PassWindow(delivery="stream", start_us=START_US, end_us=end_us)]
    unsent = Run.open(killed).requests().to_pylist()[150:]
    assert unsent[0]["start_intended_us"] == START_US + 150 * 100
    assert unsent[50]["request_id"] == "wait-00000"
    assert unsent[50]["start_intended_us"] == end_us
    assert Run.open(killed).client()["time_us"].to_pylist() == [START_US - 50] * 3
    assert info == recover_run(killed) == Run.open(killed).info
    assert not was_killed(killed)


@pytest.mark.parametrize("table", ["requests", "chunks", "client"])
@pytest.mark.parametrize("share", [0, 0.001, 0.2, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("zeros", [False, True])
def test_a_torn_log_is_read_up_to_there(
    killed: Path, table: str, share: float, zeros: bool
) -> None:
    """What is missing is not there, or is zeros, as a power loss may leave it."""
    file = log_path(killed, table)
    size = file.stat().st_size
    with file.open("r+b") as torn:
        torn.truncate(int(share * size))
        if zeros:
            torn.truncate(size)
    rows = [sum(b.num_rows for b in read_batches(killed, n)) for n in ("requests", "chunks")]
    assert min(rows) in ((150,) if table == "client" else (0, 64, 128))
    _check(killed, min(rows))


def test_only_what_ended_is_planned_where_time_alone_is(tmp_path: Path) -> None:
    info = recover_run(_journaled(tmp_path / "run", 70, open_ended=True))
    assert info.counts == Counts(planned=70, sent=70, succeeded=63, unsent=0, failed={"timeout": 7})
    assert info.validity.findings[0].text == "the replay was killed: 70 requests are known"


def test_a_run_under_way_is_left_alone(tmp_path: Path) -> None:
    writer = _begin(tmp_path / "run")
    with pytest.raises(StillWritten, match="still under way"):
        recover_run(tmp_path / "run")
    with pytest.raises(RunError, match="was killed, or goes on"):
        Run.open(tmp_path / "run")
    writer.finish([])
    writer.write_info(BEGUN)
    assert recover_run(tmp_path / "run") == BEGUN


def test_what_was_killed_is_not_written_over(killed: Path) -> None:
    with pytest.raises(RunNotWritten, match="holds a run that was killed; recover that with"):
        _begin(killed)
    _check(killed, 150)


def test_a_damaged_beginning_is_said(killed: Path) -> None:
    (killed / "journal" / "passes.msgpack").write_bytes(b"?")
    with pytest.raises(RunError, match="damaged, or of another version"):
        recover_run(killed)
    assert was_killed(killed)
