"""Several senders on Ray: one process of arrivals, and what a dead one had sent is not lost."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil
import pytest
from scipy import stats

from s2l.replayer.experiment import Experiment
from s2l.replayer.options import ReplayOptions
from s2l.replayer.run import Run, RunInfo
from s2l.replayer.scale_out.crew import Crew, WorkerLost
from s2l.replayer.scale_out.ray_crew import RayCrew
from s2l.replayer.scale_out.scale_out import ScaleOut
from s2l.replayer.scale_out.worker import ReplayWorker, WorkerSpec
from s2l.serving_adapter.base import ServingError
from s2l.serving_adapter.openai.adapter import OpenAiAdapter
from s2l.workloads.trace import Trace

OPTIONS = ReplayOptions(
    rate_qps=40, delivery="wait", n_queries=120, max_tokens=2, warmup=1, time_scale=0.1
)
QPS_BY_CORES = {8: 3000.0, 4: 800.0, 1: 200.0}
"""Two workers, the mock and this process take a core each, where there are so many."""
SECONDS = 3
ATTEMPTS = 3
"""Runs that were late, by their own verdict, say nothing of what was asked for."""


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with RayCrew(2) as crew:
        yield crew


@pytest.fixture
def mock_url() -> Iterator[str]:
    """A mock in a process of its own, which tells when each request came."""
    command = [sys.executable, "-m", "s2l", "mock", "--port", "0", "--json"]
    command += ["--ttft-ms", "10", "--tpot-ms", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
        process.terminate()


async def _replay(
    crew: Crew | None, url: str, trace: Trace, path: Path, options: ReplayOptions
) -> RunInfo:
    async with OpenAiAdapter(url) as adapter:
        senders = None
        if crew is not None:
            senders = ScaleOut(crew, WorkerSpec("openai", url, {}, options))
            await senders.hire()
        experiment = Experiment(trace, adapter, options, url=url, senders=senders, run_id="a-run")
        return await experiment.run(path)


def _log(url: str) -> list[dict[str, Any]]:
    """What came to the mock, in the order of its arrival."""
    with urllib.request.urlopen(f"{url}/mock/log") as answer:
        lines = answer.read().splitlines()
    return sorted(map(json.loads, lines), key=lambda entry: int(entry["arrived_ns"]))


async def _arrivals(
    crew: Crew | None, url: str, trace: Trace, path: Path, options: ReplayOptions
) -> tuple[RunInfo, npt.NDArray[np.float64]]:
    """A run, and when its requests came to the mock, since the first."""
    before = len(_log(url)) + options.warmup
    info = await _replay(crew, url, trace, path, options)
    arrived_ns = np.array([entry["arrived_ns"] for entry in _log(url)[before:]])
    assert info.counts.succeeded == len(arrived_ns) == options.n_queries
    return info, (arrived_ns - arrived_ns[0]) / 1e9


def _kept_to_its_schedule(info: RunInfo) -> bool:
    return not {f.check for f in info.validity.findings} & {"schedule_lag_s", "chunk_lag_s"}


async def test_two_workers_offer_the_process_of_one(
    crew: Crew, mock_url: str, trace: Trace, tmp_path: Path
) -> None:
    cores = len(os.sched_getaffinity(0))
    qps = next(qps for needed, qps in QPS_BY_CORES.items() if cores >= needed)
    options = replace(OPTIONS, rate_qps=qps, n_queries=round(qps * SECONDS))
    for attempt in range(ATTEMPTS):
        paths = [tmp_path / f"{name}{attempt}" for name in ("two", "one")]
        two, together_s = await _arrivals(crew, mock_url, trace, paths[0], options)
        one, alone_s = await _arrivals(None, mock_url, trace, paths[1], options)
        _check_split(*(Run.open(path).requests().to_pylist() for path in paths))
        assert stats.ks_2samp(together_s, alone_s).pvalue > 0.001
        if _kept_to_its_schedule(two) and _kept_to_its_schedule(one):
            assert stats.ks_2samp(np.diff(together_s), np.diff(alone_s)).pvalue > 0.01
            return
    pytest.skip(f"too busy for exact gaps at {qps:g} a second; the arrivals were compared")


def _check_split(two: list[dict[str, Any]], one: list[dict[str, Any]]) -> None:
    """One schedule, of which each worker has every other request."""
    by_start = sorted(two, key=lambda row: row["start_intended_us"])
    assert [row["worker"] for row in by_start] == [0, 1] * (len(two) // 2)
    assert len({row["request_id"] for row in two}) == len(two)
    starts = [sorted(row["start_intended_us"] for row in rows) for rows in (two, one)]
    assert [t - starts[0][0] for t in starts[0]] == [t - starts[1][0] for t in starts[1]]


async def test_a_worker_that_is_killed_loses_only_what_it_had_not_sent(
    crew: Crew, mock_url: str, trace: Trace, tmp_path: Path
) -> None:
    replaying = asyncio.create_task(_replay(crew, mock_url, trace, tmp_path / "run", OPTIONS))
    while len(await asyncio.to_thread(_log, mock_url)) < 50:
        await asyncio.sleep(0.05)
    host, pid, _ = await asyncio.to_thread(crew.call, 1, "whereabouts")
    os.kill(pid, signal.SIGKILL)
    info = await replaying
    counts = info.counts
    lost = counts.failed.get("worker_lost", 0)
    assert counts.planned == 120 == counts.sent + counts.unsent
    assert counts.failed == ({"worker_lost": lost} if lost else {})
    assert _texts(info, "clocks") == ["2 workers sent, their clocks within 0.00 ms"]
    died = f"worker 1 (process {pid} on {host}) died"
    assert _texts(info, "worker_lost") == [
        f"{died}; {lost} requests that it had begun are without an answer"
    ]
    _check_rows(Run.open(tmp_path / "run").requests().to_pylist(), died)
    # What was answered is there, but for an answer whose last bytes were on their way.
    entries = _log(mock_url)[OPTIONS.warmup :]
    answered = sum(entry["outcome"] == "ok" for entry in entries)
    assert answered - 1 <= counts.succeeded <= answered
    # What was begun and did not come had to wait for its context yet.
    assert len(entries) <= counts.sent <= len(entries) + lost


def _texts(info: RunInfo, check: str) -> list[str]:
    return [finding.text for finding in info.validity.findings if finding.check == check]


def _check_rows(rows: list[dict[str, Any]], died: str) -> None:
    assert len(rows) == 120
    ends = {worker: [r for r in rows if r["worker"] == worker] for worker in (0, 1)}
    assert all(row["error_type"] is None for row in ends[0])
    unsent = [row["start_intended_us"] for row in ends[1] if row["error_type"] == "unsent"]
    sent = [row for row in ends[1] if row["error_type"] != "unsent"]
    assert min(unsent) > max(row["start_intended_us"] for row in sent)
    assert {row["error"] for row in sent if row["error_type"] == "worker_lost"} <= {died}


async def test_a_server_that_is_not_there_is_said_before_anything_is_sent(crew: Crew) -> None:
    senders = ScaleOut(crew, WorkerSpec("openai", "http://127.0.0.1:1", {}, OPTIONS))
    with pytest.raises(ServingError, match="nothing listens there") as refused:
        await senders.hire()
    assert refused.value.error_type == "refused"


def test_a_worker_that_says_nothing_is_taken_for_dead(crew: Crew) -> None:
    crew.hire(ReplayWorker, WorkerSpec("openai", "http://127.0.0.1:1", {}, OPTIONS))
    host, pid, _ = crew.call(1, "whereabouts")
    os.kill(pid, signal.SIGSTOP)
    silent = f"worker 1 \\(process {pid} on {host}\\) has not answered for 0.5 s"
    with pytest.raises(WorkerLost, match=silent):
        crew.call(1, "now_ns", within_s=0.5)
    os.kill(pid, signal.SIGCONT)
    psutil.Process(pid).wait(20)  # it was ended, and sends nothing more
    with pytest.raises(WorkerLost, match="died"):
        crew.call(1, "now_ns", within_s=20)


TALKER = """
import os, socket, sys

class Talker:
    def whereabouts(self):
        return socket.gethostname(), os.getpid(), ""
    def say(self):
        print("on standard output", flush=True)
        print("something is wrong here", file=sys.stderr, flush=True)
"""


def test_what_a_worker_writes_to_standard_error_reaches_the_person(
    crew: Crew, capfd: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(TALKER, names)  # a class of no module is sent to workers as a whole
    crew.hire(names["Talker"])
    crew.call(0, "say")
    said, until_s = "", time.monotonic() + 20
    while "something is wrong here" not in said and time.monotonic() < until_s:
        said += capfd.readouterr().err
        time.sleep(0.05)
    assert "(Talker pid=" in said
    assert "something is wrong here" in said
