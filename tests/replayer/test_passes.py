"""Passes of a replay as asked for: moments of asking, repeats, closed loops, cancellations."""

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from s2l.replayer.answer_at import ask_us, points
from s2l.replayer.experiment import Experiment, Observer
from s2l.replayer.open_files import most_at_once
from s2l.replayer.options import ReplayOptions
from s2l.replayer.plan import PlanError
from s2l.replayer.run import Run, RunInfo
from s2l.replayer.server_monitor import ServerMonitor
from s2l.replayer.server_watch import ServerWatch
from s2l.serving_adapter.base import ServingError
from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.mock.server import MockServer
from s2l.serving_adapter.openai.adapter import OpenAiAdapter
from s2l.serving_adapter.realtime.client import RealtimeAdapter
from s2l.workloads.trace import Trace

OPTIONS = ReplayOptions(rate_qps=20, arrivals="constant", max_tokens=4, warmup=0, timeout_s=20)
FAST = Latencies(prefill_tokens_per_s=20_000, overhead_s=0.005, tpot_s=0.002)


async def _replay(
    trace: Trace, path: Path, options: ReplayOptions, *, realtime: bool = False
) -> RunInfo:
    async with MockServer(MockEngine(FAST)) as server:
        adapter = (
            RealtimeAdapter(server.url)
            if realtime
            else OpenAiAdapter(server.url, api="completions")
        )
        async with adapter:
            return await Experiment(trace, adapter, options, url=server.url).run(path)


@pytest.mark.parametrize(
    ("point", "at_us"),
    [(None, 400), ("25%", 100), ("100%", 400), ("0.2ms", 200), ("2s", 400), ("0%", 0)],
)
def test_moments_of_asking(point: str | None, at_us: int) -> None:
    assert ask_us(point, 400) == at_us


@pytest.mark.parametrize("text", ["", "soon", "25", "101%", "-1s", "1m", "1s "])
def test_bad_moments_of_asking(text: str) -> None:
    with pytest.raises(ValueError, match="write 25%, 2s or 500ms"):
        points([text])


def test_the_whole_is_asked_for_once() -> None:
    assert points([]) == [None]
    assert points(["25%", "100%", "25%", "100.0%"]) == ["25%", None]


async def test_questions_before_the_retrieval_ended(trace: Trace, tmp_path: Path) -> None:
    """Pages come at 100, 160 and 220 ms, the end at 400 ms."""
    options = replace(OPTIONS, answer_at=("40%", "220ms", "100%"), n_queries=2)
    info = await _replay(trace, tmp_path / "run", options, realtime=True)
    assert info.counts.planned == info.counts.succeeded == 2 * 2 * 3
    assert [(w.delivery, w.answer_at) for w in info.passes] == [
        (delivery, point) for point in ("40%", "220ms", None) for delivery in ("stream", "wait")
    ]
    run = Run.open(tmp_path / "run")
    rows = {row["request_id"]: row for row in run.requests().to_pylist()}
    chunks = run.chunks().to_pylist()
    for name, asked_ms, pages in (("@40%", 160, 2), ("@220ms", 220, 3), ("", 400, 3)):
        for delivery in ("wait", "stream"):
            row = rows[f"{delivery}{name}-00001"]
            assert row["context_intended_us"] - row["start_intended_us"] == asked_ms * 1000
            mine = [c for c in chunks if c["request_id"] == row["request_id"]]
            assert len(mine) == pages
            assert all(c["send_intended_us"] <= row["context_intended_us"] for c in mine)
            assert row["answer_at"] == (name[1:] or None)
    answers = {name: rows[f"wait{name}-00000"]["output_text"] for name in ("@40%", "@220ms", "")}
    assert answers["@40%"] != answers["@220ms"] == answers[""]


async def test_queries_are_used_again_with_caches_of_their_own(
    trace: Trace, tmp_path: Path
) -> None:
    options = replace(OPTIONS, repeat=2, n_queries=6, rate_qps=100, delivery="wait")
    info = await _replay(trace, tmp_path / "run", options)
    rows = Run.open(tmp_path / "run").requests().sort_by("start_intended_us").to_pylist()
    assert info.counts.succeeded == 12
    assert [row["query_id"] for row in rows] == [f"q{n % 4}" for n in range(12)]
    assert [row["repeat"] for row in rows] == [n // 4 for n in range(12)]
    assert {row["cached_tokens"] for row in rows} == {0}
    assert info.schedule["requests"] == 12


async def test_a_duration_ends_the_starts(trace: Trace, tmp_path: Path) -> None:
    options = replace(OPTIONS, duration_s=0.5, rate_qps=20, delivery="wait")
    info = await _replay(trace, tmp_path / "run", options)
    assert info.counts.planned == info.counts.succeeded == 10
    both = replace(options, n_queries=7)
    assert (await _replay(trace, tmp_path / "both", both)).counts.planned == 7


async def test_a_closed_loop(trace: Trace, tmp_path: Path) -> None:
    options = replace(OPTIONS, rate_qps=None, concurrency=2, n_queries=6, delivery="stream")
    info = await _replay(trace, tmp_path / "run", options)
    rows = Run.open(tmp_path / "run").requests().sort_by("start_us").to_pylist()
    assert info.counts.succeeded == 6
    assert info.schedule["arrivals"] == "closed_loop"
    ends = sorted(row["end_us"] for row in rows)
    for begun, row in enumerate(rows[2:]):
        assert row["start_us"] >= row["start_intended_us"] == ends[begun]


async def test_a_closed_loop_that_its_duration_ends(trace: Trace, tmp_path: Path) -> None:
    options = replace(OPTIONS, rate_qps=None, concurrency=3, duration_s=0.6, delivery="wait")
    info = await _replay(trace, tmp_path / "run", options)
    assert info.counts.planned == info.counts.succeeded == 6
    assert info.counts.unsent == 0
    assert info.schedule["requests"] is None
    async with MockServer(MockEngine(FAST)) as server, OpenAiAdapter(server.url) as adapter:
        plan = await Experiment(trace, adapter, options, url=server.url).plan_only()
    assert (plan.requests_per_pass, plan.chunks_per_pass) == (None, None)
    assert plan.lines()[2] == "requests in each: as many as end in the time given, of 4 queries"


async def test_clients_that_give_up_are_counted_as_such(trace: Trace, tmp_path: Path) -> None:
    options = replace(OPTIONS, n_queries=20, rate_qps=50, cancel_fraction=0.5, delivery="wait")
    info = await _replay(trace, tmp_path / "run", options)
    assert set(info.counts.failed) == {"cancelled"}
    assert 0 < info.counts.failed["cancelled"] < 20
    assert "failures" not in {finding.check for finding in info.validity.findings}


async def test_a_plan_is_told_without_sending_anything(trace: Trace) -> None:
    engine = MockEngine(FAST)
    async with MockServer(engine) as server, OpenAiAdapter(server.url) as adapter:
        options = replace(OPTIONS, n_queries=8, answer_at=("50%", "100%"))
        summary = await Experiment(trace, adapter, options, url=server.url).plan_only()
    assert summary.passes == ("stream@50%", "wait@50%", "stream", "wait")
    assert (summary.requests_per_pass, summary.queries, summary.chunks_per_pass) == (8, 4, 24)
    assert summary.context_tokens_per_pass == 8 * (21 + 31 + 41)
    assert summary.output_tokens_per_pass == 32
    assert summary.last_start_s == pytest.approx(0.35)
    assert summary.duration_s == pytest.approx(4 * 0.75)
    assert len(summary.lines()) == 6


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"concurrency": 2, "max_concurrency": 3}, "give one"),
        ({"cancel_fraction": 1.5}, "from 0 to 1"),
        ({"arrivals": "often"}, "is not one of"),
    ],
)
async def test_options_that_cannot_be(
    trace: Trace, tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    with pytest.raises(PlanError, match=reason):
        await _replay(trace, tmp_path / "run", replace(OPTIONS, **change))  # type: ignore[arg-type]


async def test_a_live_view_is_told_how_it_goes(trace: Trace, tmp_path: Path) -> None:
    seen = []

    def look(_: object) -> None:
        seen.append((experiment.progress(), experiment.validity()))

    async with MockServer(MockEngine(FAST)) as server, OpenAiAdapter(server.url) as adapter:
        options = replace(OPTIONS, n_queries=10, rate_qps=20)
        experiment = Experiment(
            trace, adapter, options, url=server.url, observer=Observer(on_end=look)
        )
        assert experiment.progress().planned == 0
        await experiment.run(tmp_path / "run")
    progress = [p for p, _ in seen]
    assert [p.pass_name for p in progress] == ["stream"] * 10 + ["wait"] * 10
    assert all(p.planned == 10 and 0 <= p.in_flight <= p.due <= 10 for p in progress)
    assert progress[9].due == 10
    assert experiment.progress().succeeded == 10


async def test_same_seed_same_schedule(trace: Trace, tmp_path: Path) -> None:
    starts = []
    for path, delivery in (("a", "wait"), ("b", "stream")):
        options = replace(OPTIONS, arrivals="poisson", rate_qps=100, delivery=delivery, seed=3)
        await _replay(trace, tmp_path / path, options)
        rows = Run.open(tmp_path / path).requests().sort_by("request_id").to_pydict()
        at = np.array(rows["start_intended_us"])
        starts.append(list(at - at[0]))
    assert starts[0] == starts[1]


def test_intervals_that_overlap() -> None:
    starts, ends = np.array([0, 1, 2, 10]), np.array([2, 5, 3, 11])
    assert most_at_once(starts, ends) == 2
    assert most_at_once(np.zeros(5, dtype=int), np.ones(5, dtype=int)) == 5
    assert most_at_once(np.zeros(0, dtype=int), np.zeros(0, dtype=int)) == 0


async def test_a_stopped_run_names_passes_that_never_began(trace: Trace, tmp_path: Path) -> None:
    async with MockServer(MockEngine(FAST)) as server, OpenAiAdapter(server.url) as adapter:
        experiment = Experiment(
            trace,
            adapter,
            OPTIONS,
            url=server.url,
            observer=Observer(on_end=lambda _: experiment.stop()),
        )
        info = await asyncio.wait_for(experiment.run(tmp_path / "run"), 10)
    rows = Run.open(tmp_path / "run").requests().to_pylist()
    assert info.interrupted
    assert [w.delivery for w in info.passes] == ["stream"]
    assert {r["error_type"] for r in rows if r["delivery"] == "wait"} == {"unsent"}
    assert len(rows) == 8


async def test_what_the_server_says_of_itself_is_sampled(trace: Trace, tmp_path: Path) -> None:
    async with MockServer(MockEngine(FAST)) as server, OpenAiAdapter(server.url) as adapter:
        watch = ServerWatch(ServerMonitor(server.url, 0.1))
        options = replace(OPTIONS, n_queries=2)
        experiment = Experiment(trace, adapter, options, url=server.url, server_watch=watch)
        await experiment.run(tmp_path / "run")
    rows = Run.open(tmp_path / "run").server().to_pylist()
    assert {row["delivery"] for row in rows} == {"wait", "stream"}
    assert "running" in {row["name"] for row in rows}
    times = [row["time_us"] for row in rows if row["name"] == "running"]
    assert times == sorted(times)
    assert len(times) >= 6


async def test_a_cache_that_cannot_be_emptied_ends_the_run(trace: Trace, tmp_path: Path) -> None:
    answers = iter([True])

    def reset() -> bool:
        for answer in answers:
            return answer
        raise ServingError("rejected", "/reset_prefix_cache: HTTP 503 busy")

    async with MockServer(MockEngine(FAST)) as server, OpenAiAdapter(server.url) as adapter:
        watch = ServerWatch(reset_cache=reset)
        experiment = Experiment(trace, adapter, OPTIONS, url=server.url, server_watch=watch)
        info = await experiment.run(tmp_path / "run")
    assert (info.counts.succeeded, info.counts.unsent) == (4, 4)
    assert info.validity.verdict == "invalid"
    texts = {f.check: f.text for f in info.validity.findings}
    assert texts["cache_not_emptied"] == (
        "wait and what follows was not sent: /reset_prefix_cache: HTTP 503 busy"
    )
