"""Passes shared by workers that are threads here: each end comes at a known moment."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from s2l.replayer.experiment import Experiment
from s2l.replayer.options import ReplayOptions
from s2l.replayer.plan import PlanError, plan_queries
from s2l.replayer.run import Finding, Run, RunInfo
from s2l.replayer.scale_out import worker as worker_module
from s2l.replayer.scale_out.crew import Crew, WorkerLost
from s2l.replayer.scale_out.scale_out import ScaleOut
from s2l.replayer.scale_out.worker import Report, WorkerSpec
from s2l.replayer.scale_out.worker_log import Parcel
from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.mock.server import MockServer
from s2l.serving_adapter.openai.adapter import OpenAiAdapter
from s2l.workloads.trace import Trace

sys.path.insert(0, str(Path(__file__).parent))
from crew_of_threads import CrewElsewhere, CrewOfThreads

OPTIONS = ReplayOptions(
    rate_qps=100, arrivals="constant", delivery="both", n_queries=40, max_tokens=2, warmup=1
)


@pytest.fixture
async def server() -> AsyncIterator[MockServer]:
    async with MockServer(MockEngine(Latencies(overhead_s=0.01, tpot_s=0.001))) as server:
        yield server


async def _replay(
    crew: Crew,
    server: MockServer,
    trace: Trace,
    path: Path,
    options: ReplayOptions = OPTIONS,
) -> RunInfo:
    async with OpenAiAdapter(server.url) as adapter:
        senders = ScaleOut(crew, WorkerSpec("openai", server.url, {}, options))
        await senders.hire()
        return await Experiment(trace, adapter, options, url=server.url, senders=senders).run(path)


def _of(info: RunInfo, check: str) -> list[Finding]:
    return [finding for finding in info.validity.findings if finding.check == check]


def _connections(server: MockServer) -> int:
    port = int(server.url.rpartition(":")[2])
    found = psutil.Process().net_connections("tcp")
    return sum(c.laddr.port == port and c.status == psutil.CONN_ESTABLISHED for c in found)


async def test_each_worker_opens_the_connections_of_its_share_before_the_start(
    server: MockServer, trace: Trace
) -> None:
    options = ReplayOptions(rate_qps=10, arrivals="constant", n_queries=200, max_tokens=2)
    crew = CrewOfThreads(2)
    async with OpenAiAdapter(server.url) as adapter:
        plan = await plan_queries(trace, adapter, options, await adapter.probe())
        senders = ScaleOut(crew, WorkerSpec("openai", server.url, {}, options))
        await senders.hire()
        senders.answer_s = 0.4
        before = _connections(server)
        await senders.prepare(plan, "wait", None)
        # Of 5 a second each, a request holds one for 0.4 s until it is due, and one and a half
        # times 0.4 s.
        assert _connections(server) - before == 2 * 5
        await senders.prepare(plan, "wait", None)
        assert _connections(server) - before == 2 * 5


async def test_a_share_that_needs_more_files_than_may_be_open_is_refused(
    server: MockServer, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ReplayOptions(rate_qps=None, concurrency=100, n_queries=200, max_tokens=2)
    monkeypatch.setattr(worker_module, "raise_limit", lambda: psutil.Process().num_fds() + 40)
    async with OpenAiAdapter(server.url) as adapter:
        plan = await plan_queries(trace, adapter, options, await adapter.probe())
        senders = ScaleOut(CrewOfThreads(2), WorkerSpec("openai", server.url, {}, options))
        await senders.hire()
        with pytest.raises(PlanError, match="up to 50 requests are under way at once"):
            await senders.prepare(plan, "wait", None)


async def test_a_worker_that_dies_in_one_pass_sends_nothing_of_the_next(
    server: MockServer, trace: Trace, tmp_path: Path
) -> None:
    def before(worker: int, method: str) -> None:
        if (worker, method) == (1, "report") and crew.objects[1]._runner.started >= 10:
            crew.lost.add(1)

    crew = CrewOfThreads(2, before)
    info = await _replay(crew, server, trace, tmp_path / "run")
    crew.objects[1].stop()
    rows = Run.open(tmp_path / "run").requests().to_pylist()
    assert len(rows) == 80
    ends = {
        name: [r["error_type"] for r in rows if (r["delivery"], r["worker"]) == (name, 1)]
        for name in ("stream", "wait")
    }
    assert set(ends["wait"]) == {"unsent"}
    assert set(ends["stream"]) <= {None, "worker_lost", "unsent"}
    failed = ends["stream"].count("worker_lost")
    assert ends["stream"].count(None) + failed >= 10
    counts = info.counts
    assert (counts.planned, counts.sent + counts.unsent) == (80, 80)
    assert counts.sent == counts.succeeded + failed
    says = f"worker 1 died; {failed} requests that it had begun are without an answer"
    assert [(f.severity, f.text) for f in _of(info, "worker_lost")] == [("degraded", says)]


async def test_when_all_workers_die_the_run_ends_and_keeps_what_there_is(
    server: MockServer, trace: Trace, tmp_path: Path
) -> None:
    def before(worker: int, method: str) -> None:
        if method == "report" and crew.objects[worker]._runner.started >= 5:
            crew.lost.add(worker)

    crew = CrewOfThreads(2, before)
    info = await _replay(crew, server, trace, tmp_path / "run")
    for one in crew.objects:
        one.stop()
    counts = info.counts
    assert counts.planned == 80 == counts.sent + counts.unsent
    assert counts.sent >= 10
    assert counts.unsent >= 40
    assert len(_of(info, "worker_lost")) == 2
    assert Run.open(tmp_path / "run").requests().num_rows == 80


async def test_a_worker_that_dies_before_anything_was_sent_ends_it(
    server: MockServer, trace: Trace, tmp_path: Path
) -> None:
    crew = CrewOfThreads(2, lambda worker, method: crew.lost.update({1} & {worker}))
    with pytest.raises(WorkerLost, match="worker 1 died"):
        await _replay(crew, server, trace, tmp_path / "run")


async def test_a_clock_that_is_ahead_is_allowed_for(
    server: MockServer, trace: Trace, tmp_path: Path
) -> None:
    crew = CrewElsewhere(2, 3_600 * 10**9)
    info = await _replay(crew, server, trace, tmp_path / "run")
    assert (info.counts.planned, info.counts.succeeded) == (80, 80)
    (found,) = _of(info, "clocks")
    assert found.severity == "note"
    assert 0 < _error_ms(found) < 5
    rows = Run.open(tmp_path / "run").requests().to_pylist()
    assert max(row["start_us"] - row["start_intended_us"] for row in rows) < 1e6


async def test_clocks_that_cannot_be_read_well_count_against_the_run(
    server: MockServer, trace: Trace, tmp_path: Path
) -> None:
    crew = CrewElsewhere(1, 0, line_s=0.012)
    info = await _replay(crew, server, trace, tmp_path / "run")
    (found,) = _of(info, "clocks")
    assert found.severity == "degraded"
    assert found.text.endswith("(limit 5 ms)")
    assert 6 <= _error_ms(found) < 50


async def test_a_clock_that_drifts_during_a_pass_counts_against_the_run(
    server: MockServer, trace: Trace, tmp_path: Path
) -> None:
    crew = CrewElsewhere(2, 0)
    async with OpenAiAdapter(server.url) as adapter:
        plan = await plan_queries(trace, adapter, OPTIONS, await adapter.probe())
    senders = ScaleOut(crew, WorkerSpec("openai", server.url, {}, OPTIONS))
    await senders.hire()
    await senders.prepare(plan, "wait", None)
    crew.ahead_ns += 60_000_000
    await senders._look_for_drift()
    (found,) = senders.findings()
    assert (found.check, found.severity) == ("clocks", "invalid")
    assert found.text.startswith("2 workers sent, their clocks within 6")
    assert found.text.endswith("(limit 50 ms)")


def _error_ms(found: Finding) -> float:
    return float(found.text.partition("within ")[2].split()[0])


async def test_a_pass_that_is_called_off_before_it_begins_sends_nothing(
    server: MockServer, trace: Trace
) -> None:
    async with OpenAiAdapter(server.url) as adapter:
        plan = await plan_queries(trace, adapter, OPTIONS, await adapter.probe())
    crew = CrewOfThreads(2)
    senders = ScaleOut(crew, WorkerSpec("openai", server.url, {}, OPTIONS))
    await senders.hire()
    await senders.prepare(plan, "wait", None)
    one = crew.objects[0]
    assert one.report() == Report(0, 0, False, False, Parcel([], []))
    one.stop()
    one.begin("a-run", None, None, one.now_ns(), 0)
    assert one.report() == Report(0, 0, True, False, Parcel([], []))
