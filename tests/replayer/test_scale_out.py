"""Several senders on Ray: one process of arrivals, and what a dead one had sent is not lost."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import numpy as np
import pytest
from scipy import stats

from s2l.replayer.experiment import Experiment
from s2l.replayer.options import ReplayOptions
from s2l.replayer.passes import passes_of
from s2l.replayer.plan import plan_queries
from s2l.replayer.run import Run, RunInfo
from s2l.replayer.scale_out.crew import Crew
from s2l.replayer.scale_out.scale_out import ScaleOut
from s2l.replayer.scale_out.worker import ReplayWorker, Report, WorkerSpec
from s2l.serving_adapter.base import ServingError
from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.mock.server import MockServer
from s2l.serving_adapter.openai.adapter import OpenAiAdapter
from s2l.workloads.trace import Trace

OPTIONS = ReplayOptions(
    rate_qps=40, delivery="wait", n_queries=120, max_tokens=2, warmup=1, time_scale=0.1
)


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    from s2l.replayer.scale_out.ray_crew import RayCrew

    with RayCrew(2) as crew:
        yield crew


@pytest.fixture
async def server() -> AsyncIterator[MockServer]:
    async with MockServer(MockEngine(Latencies(overhead_s=0.01, tpot_s=0.001))) as server:
        yield server


async def _replay(
    crew: Crew | None, server: MockServer, trace: Trace, path: Path, options: ReplayOptions
) -> RunInfo:
    async with OpenAiAdapter(server.url) as adapter:
        senders = None
        if crew is not None:
            senders = ScaleOut(crew, WorkerSpec("openai", server.url, {}, options))
            await senders.hire()
        experiment = Experiment(
            trace, adapter, options, url=server.url, senders=senders, run_id="a-run"
        )
        return await experiment.run(path)


async def _arrivals_s(server: MockServer) -> np.ndarray:
    """When requests came to the server, but for those that warmed up."""
    async with aiohttp.ClientSession() as http, http.get(f"{server.url}/mock/log") as response:
        lines = (await response.text()).splitlines()
    times = np.sort([json.loads(line)["arrived_ns"] for line in lines])[OPTIONS.warmup :]
    return (times - times[0]) / 1e9


async def test_two_workers_offer_the_process_of_one(
    crew: Crew, server: MockServer, trace: Trace, tmp_path: Path
) -> None:
    info = await _replay(crew, server, trace, tmp_path / "two", OPTIONS)
    assert (info.counts.planned, info.counts.succeeded) == (120, 120)
    clocks = [f for f in info.validity.findings if f.check == "clocks"]
    assert clocks[0].text == "2 workers sent, their clocks within 0.00 ms"
    rows = Run.open(tmp_path / "two").requests().to_pylist()
    by_start = sorted(rows, key=lambda row: row["start_intended_us"])
    assert [row["worker"] for row in by_start] == [0, 1] * 60
    assert len({row["request_id"] for row in rows}) == 120
    together_s = await _arrivals_s(server)

    async with MockServer(server.engine) as other:
        await _replay(None, other, trace, tmp_path / "one", OPTIONS)
        alone = Run.open(tmp_path / "one").requests().to_pylist()
        alone_s = await _arrivals_s(other)
    starts = [sorted(row["start_intended_us"] for row in some) for some in (rows, alone)]
    assert [t - starts[0][0] for t in starts[0]] == [t - starts[1][0] for t in starts[1]]
    gaps = (np.diff(together_s), np.diff(alone_s))
    assert len(gaps[0]) == len(gaps[1])
    assert stats.ks_2samp(*gaps).pvalue > 0.01


async def test_a_worker_that_dies_is_named_and_loses_only_what_it_had_not_sent(
    crew: Crew, server: MockServer, trace: Trace, tmp_path: Path
) -> None:
    replaying = asyncio.create_task(_replay(crew, server, trace, tmp_path / "run", OPTIONS))
    while len(await _arrivals_so_far(server)) < 50:
        await asyncio.sleep(0.05)
    host, pid, _ = await asyncio.to_thread(crew.call, 1, "whereabouts")
    os.kill(pid, signal.SIGKILL)
    info = await replaying
    counts = info.counts
    assert counts.planned == 120 == counts.sent + counts.unsent
    assert counts.sent == counts.succeeded + sum(counts.failed.values())
    assert set(counts.failed) <= {"worker_lost"}
    lost = [f.text for f in info.validity.findings if f.check == "worker_lost"]
    assert lost == [f"worker 1 (process {pid} on {host}) died"]
    rows = Run.open(tmp_path / "run").requests().to_pylist()
    assert len(rows) == 120
    unsent = {row["worker"] for row in rows if row["error_type"] == "unsent"}
    assert unsent == {1}
    survivors = [row for row in rows if row["worker"] == 0]
    assert all(row["error_type"] is None for row in survivors)
    told = [row for row in rows if row["worker"] == 1 and row["error_type"] is None]
    assert told  # what it had handed over is kept


async def _arrivals_so_far(server: MockServer) -> np.ndarray:
    try:
        return await _arrivals_s(server)
    except (IndexError, ValueError):
        return np.zeros(0)


async def test_a_server_that_is_not_there_is_said_before_anything_is_sent(crew: Crew) -> None:
    senders = ScaleOut(crew, WorkerSpec("openai", "http://127.0.0.1:1", {}, OPTIONS))
    with pytest.raises(ServingError, match="nothing listens there") as refused:
        await senders.hire()
    assert refused.value.error_type == "refused"


async def test_a_pass_that_is_called_off_before_it_begins_sends_nothing(
    server: MockServer, trace: Trace
) -> None:
    async with OpenAiAdapter(server.url) as adapter:
        plan = await plan_queries(trace, adapter, OPTIONS, await adapter.probe())
    todo, *_ = passes_of(plan, ("wait",), (None,), run_id="a-run", rate=OPTIONS.rate_qps)

    def called_off() -> Report:
        worker = ReplayWorker(WorkerSpec("openai", server.url, {}, OPTIONS))
        worker.connect()
        worker.prepare(plan, "wait", None)
        worker.stop()
        worker.begin(todo.slice_for(0, 2), 2, None, worker.now_ns(), 0)
        while not (report := worker.report()).over:
            pass
        return report

    assert await asyncio.to_thread(called_off) == Report(0, 0, True, False, [])
