"""However a run ends, every planned request is accounted for and the run opens."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from s2l.replayer.experiment import Experiment, Observer
from s2l.replayer.options import ReplayOptions
from s2l.replayer.run import Run, RunInfo
from s2l.serving_adapter.base import ServingError
from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.mock.server import MockServer
from s2l.serving_adapter.openai.adapter import OpenAiAdapter
from s2l.workloads.trace import Trace

OPTIONS = ReplayOptions(
    rate_qps=60, arrivals="constant", n_queries=30, max_tokens=8, warmup=0, timeout_s=3
)
FAST = Latencies(ttft_s=0.02, tpot_s=0.005)
_RANDOM = random.Random(0)
MOMENTS_S = [_RANDOM.uniform(0.0, 2.0) for _ in range(20)]
QUICK = 2
_MOMENTS = [
    pytest.param(s, marks=[pytest.mark.slow] if n >= QUICK else []) for n, s in enumerate(MOMENTS_S)
]

_REPLAY = """
import asyncio, signal, sys
from pathlib import Path
from s2l.serving_adapter.event_loop import run
from s2l.replayer.experiment import Experiment, Observer
from s2l.replayer.options import ReplayOptions
from s2l.serving_adapter.openai.adapter import OpenAiAdapter
from s2l.workloads.trace import Trace

async def main():
    trace, url, out, rate, files = sys.argv[1:]
    if files != "-":
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(files), int(files)))
    options = ReplayOptions(rate_qps=float(rate), arrivals="constant", n_queries=30, max_tokens=8,
                            warmup=0, timeout_s=3)
    async with OpenAiAdapter(url, api="completions") as adapter:
        experiment = Experiment(Trace.open(Path(trace)), adapter, options, url=url,
                                observer=Observer(on_pass=lambda *_: print("go", flush=True)))
        pressed = []
        def on_signal():
            pressed.append(1)
            experiment.drain() if len(pressed) == 1 else experiment.stop()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, on_signal)
        await experiment.run(Path(out))

run(main())
"""


def _accounted(path: Path, planned: int = 60) -> RunInfo:
    """Every planned request has one row, and the counts are those of the rows."""
    run = Run.open(path)
    counts = run.info.counts
    kinds = run.requests().column("error_type").to_pylist()
    ids = run.requests().column("request_id").to_pylist()
    assert counts.planned == planned == len(kinds) == len(set(ids))
    assert counts.planned == counts.sent + counts.unsent
    assert counts.sent == counts.succeeded + sum(counts.failed.values())
    assert kinds.count("unsent") == counts.unsent
    assert kinds.count(None) == counts.succeeded
    for table in (run.chunks(), run.client(), run.queries()):
        assert table.num_rows > 0
    return run.info


async def _child(
    trace: Trace, url: str, out: Path, *, rate_qps: float = 60, files: str = "-"
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *[sys.executable, "-c", _REPLAY, str(trace.path), url, str(out), str(rate_qps), files],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


async def _interrupted(trace: Trace, out: Path, after_s: float, *, twice: bool) -> RunInfo:
    async with MockServer(MockEngine(FAST)) as server:
        child = await _child(trace, server.url, out)
        assert child.stdout is not None
        await child.stdout.readline()
        await asyncio.sleep(after_s)
        for _ in range(2 if twice else 1):
            if child.returncode is None:
                child.send_signal(signal.SIGINT)
                await asyncio.sleep(0.02)
        _, stderr = await asyncio.wait_for(child.communicate(), 20)
    # A signal that comes once the run is written meets a program that catches nothing any more.
    assert child.returncode in (0, -signal.SIGINT), stderr.decode()
    assert stderr.decode() == ""
    return _accounted(out)


@pytest.mark.parametrize("after_s", _MOMENTS)
async def test_ctrl_c_once_drains(trace: Trace, tmp_path: Path, after_s: float) -> None:
    info = await _interrupted(trace, tmp_path / "run", after_s, twice=False)
    assert "interrupted" not in info.counts.failed
    assert info.interrupted == (info.counts.unsent > 0)


@pytest.mark.parametrize("after_s", _MOMENTS)
async def test_ctrl_c_twice_stops_at_once(trace: Trace, tmp_path: Path, after_s: float) -> None:
    info = await _interrupted(trace, tmp_path / "run", after_s, twice=True)
    assert set(info.counts.failed) <= {"interrupted"}


@asynccontextmanager
async def _mock_process() -> AsyncIterator[tuple[str, int]]:
    """Address and process id of a mock that may be killed."""
    child = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "s2l.replayer.calibration_server", "0.02", "0.005"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdin is not None
    try:
        yield (await child.stdout.readline()).decode().strip(), child.pid
    finally:
        child.stdin.close()
        await child.wait()


@pytest.mark.parametrize("after_s", _MOMENTS)
async def test_a_server_killed_at_any_moment(trace: Trace, tmp_path: Path, after_s: float) -> None:
    async with _mock_process() as (url, pid), OpenAiAdapter(url, api="completions") as adapter:
        begun = asyncio.Event()
        experiment = Experiment(
            trace, adapter, OPTIONS, url=url, observer=Observer(on_pass=lambda *_: begun.set())
        )
        running = asyncio.create_task(experiment.run(tmp_path / "run"))
        await asyncio.wait_for(begun.wait(), 10)
        await asyncio.sleep(after_s)
        os.kill(pid, signal.SIGKILL)
        await asyncio.wait_for(running, 20)
    info = _accounted(tmp_path / "run")
    assert set(info.counts.failed) <= {"refused", "disconnected", "connect", "server_error"}


async def test_a_plan_that_needs_more_files_than_may_be_open_is_refused(
    trace: Trace, tmp_path: Path
) -> None:
    async with MockServer(MockEngine(FAST)) as server:
        child = await _child(trace, server.url, tmp_path / "run", rate_qps=1000, files="32")
        _, stderr = await asyncio.wait_for(child.communicate(), 20)
    last = stderr.decode().splitlines()[-1]
    assert child.returncode == 1
    assert "up to 30 requests are under way at once, and only 32 files may be open" in last
    assert not (tmp_path / "run").exists()


async def test_few_files_are_enough_for_few_requests(trace: Trace, tmp_path: Path) -> None:
    async with MockServer(MockEngine(FAST)) as server:
        child = await _child(trace, server.url, tmp_path / "run", rate_qps=30, files="64")
        _, stderr = await asyncio.wait_for(child.communicate(), 20)
    assert (child.returncode, stderr.decode()) == (0, "")
    assert _accounted(tmp_path / "run").counts.succeeded == 60


async def test_a_server_that_dies_before_the_warm_up_starts_nothing(
    trace: Trace, tmp_path: Path, unused_tcp_port: int
) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    async with OpenAiAdapter(url) as adapter:
        with pytest.raises(ServingError):
            await Experiment(trace, adapter, replace(OPTIONS), url=url).run(tmp_path / "run")
    assert not (tmp_path / "run").exists()
