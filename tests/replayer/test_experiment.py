"""Replays over real sockets against the mock: what is written is what happened."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from s2l.replayer.experiment import Experiment, Observer
from s2l.replayer.options import ReplayOptions
from s2l.replayer.plan import PlanError
from s2l.replayer.run import Run, RunInfo
from s2l.serving_adapter.base import ServingError
from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.mock.server import MockServer
from s2l.serving_adapter.realtime.client import RealtimeAdapter
from s2l.workloads.trace import Trace

OPTIONS = ReplayOptions(rate_qps=20, arrivals="constant", max_tokens=4, warmup=1)
FAST = Latencies(prefill_tokens_per_s=2_000, overhead_s=0.005, tpot_s=0.002)


async def _replay(
    trace: Trace,
    path: Path,
    options: ReplayOptions = OPTIONS,
    engine: MockEngine | None = None,
    observer: Observer | None = None,
) -> RunInfo:
    async with MockServer(engine or MockEngine(FAST)) as server, RealtimeAdapter(server.url) as a:
        experiment = Experiment(
            trace, a, options, url=server.url, observer=observer or Observer(), command=["s2l"]
        )
        return await experiment.run(path)


@pytest.fixture(scope="module")
def usual(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunInfo, Run]:
    """One replay of the options above: what it said, and the run that it wrote."""
    path = tmp_path_factory.mktemp("usual") / "run"
    return asyncio.run(_replay(trace, path)), Run.open(path)


def test_both_deliveries_hold_the_same_prompts_and_all_is_counted(
    usual: tuple[RunInfo, Run], trace: Trace
) -> None:
    info, run = usual
    assert run.info == info
    assert (info.counts.planned, info.counts.sent, info.counts.succeeded) == (8, 8, 8)
    assert (info.counts.unsent, info.counts.failed) == (0, {})
    assert info.schedule["unfinished_left_out"] == 1
    assert [window.delivery for window in info.passes] == ["stream", "wait"]
    assert (info.trace.name, info.trace.sha256) == ("small", trace.sha256)
    rows = run.requests().to_pylist()
    by_query: dict[str, list[str]] = {}
    for row in rows:
        by_query.setdefault(row["query_id"], []).append(row["output_text"])
    # The mock's answer begins with a hash of all that it was given.
    assert sorted(by_query) == ["q0", "q1", "q2", "q3"]
    assert all(first == second for first, second in by_query.values())
    assert len({texts[0] for texts in by_query.values()}) == 4
    assert all(row["output_tokens"] == 4 and row["token_n"] == [1] * 4 for row in rows)
    assert all(row["finish_reason"] == "length" for row in rows)


def test_times_are_those_of_the_schedule(usual: tuple[RunInfo, Run]) -> None:
    _, run = usual
    requests = {row["request_id"]: row for row in run.requests().to_pylist()}
    for delivery in ("wait", "stream"):
        mine = [r for r in requests.values() if r["delivery"] == delivery]
        first = mine[0]["start_intended_us"]
        assert [r["start_intended_us"] - first for r in mine] == [0, 50_000, 100_000, 150_000]
    for row in requests.values():
        assert row["context_intended_us"] - row["start_intended_us"] == 400_000
        assert row["start_us"] >= row["start_intended_us"]
        assert row["context_us"] >= row["context_intended_us"]
        assert row["context_us"] < row["first_token_us"] <= row["last_token_us"] <= row["end_us"]
    chunks = run.chunks().to_pylist()
    assert len(chunks) == 8 * 3
    for chunk in chunks:
        request = requests[chunk["request_id"]]
        arrival = chunk["arrival_intended_us"] - request["start_intended_us"]
        assert arrival == 100_000 + chunk["seq"] * 60_000
        due = {"stream": arrival, "wait": 400_000}[request["delivery"]]
        assert chunk["send_intended_us"] - request["start_intended_us"] == due
        assert chunk["sent_us"] >= chunk["send_intended_us"]
        assert chunk["tokens"] == 21 + 10 * chunk["seq"]  # words of the page, and its newline
        assert chunk["prefilled_us"] is not None


def test_streaming_hides_the_prefill_that_waiting_pays(usual: tuple[RunInfo, Run]) -> None:
    _, run = usual
    for row in run.requests().to_pylist():
        if row["delivery"] == "wait":
            assert row["cached_tokens"] == 0
        else:
            # All pages were prefilled at their arrival; question and template were not.
            assert row["prompt_tokens"] - row["cached_tokens"] < 10


async def test_contexts_are_cut_to_the_budget(trace: Trace, tmp_path: Path) -> None:
    await _replay(trace, tmp_path / "run", replace(OPTIONS, context_tokens=60))
    chunks = Run.open(tmp_path / "run").chunks().to_pylist()
    first = [c["tokens"] for c in chunks if c["request_id"] == "wait-00000"]
    assert first == [20, 20, 20]


async def test_one_delivery_and_fewer_queries(trace: Trace, tmp_path: Path) -> None:
    options = replace(OPTIONS, delivery="stream", n_queries=2, time_scale=0.5)
    info = await _replay(trace, tmp_path / "run", options)
    rows = Run.open(tmp_path / "run").requests().to_pylist()
    assert [row["request_id"] for row in rows] == ["stream-00000", "stream-00001"]
    assert rows[0]["context_intended_us"] - rows[0]["start_intended_us"] == 200_000
    assert info.counts.planned == 2


async def test_recorded_arrivals_without_a_rate_keep_the_traces_times(
    trace: Trace, tmp_path: Path
) -> None:
    options = replace(OPTIONS, arrivals="recorded", rate_qps=None, delivery="stream")
    await _replay(trace, tmp_path / "run", options)
    rows = Run.open(tmp_path / "run").requests().to_pylist()
    first = rows[0]["start_intended_us"]
    assert [r["start_intended_us"] - first for r in rows] == [0, 100_000, 200_000, 300_000]
    assert rows[0]["rate"] is None


async def test_interruption_keeps_what_was_measured(trace: Trace, tmp_path: Path) -> None:
    ended = asyncio.Event()
    observer = Observer(on_end=lambda _: ended.set())
    options = replace(OPTIONS, rate_qps=2)
    task = asyncio.create_task(_replay(trace, tmp_path / "run", options, observer=observer))
    await asyncio.wait_for(ended.wait(), 10)
    task.cancel()
    info = await task
    assert info.interrupted
    rows = Run.open(tmp_path / "run").requests().to_pylist()
    kinds = [row["error_type"] for row in rows]
    assert len(rows) == info.counts.planned == 8
    assert kinds[0] is None
    assert kinds[4:] == ["unsent"] * 4
    assert info.counts.sent + info.counts.unsent == 8
    assert info.validity.verdict != "valid"


async def test_a_server_that_dies_leaves_a_run_with_what_was_measured(
    trace: Trace, tmp_path: Path
) -> None:
    async with MockServer(MockEngine(FAST)) as server, RealtimeAdapter(server.url) as adapter:
        ended = asyncio.Event()
        experiment = Experiment(
            trace,
            adapter,
            replace(OPTIONS, rate_qps=4),
            url=server.url,
            observer=Observer(on_end=lambda _: ended.set()),
        )
        task = asyncio.create_task(experiment.run(tmp_path / "run"))
        await asyncio.wait_for(ended.wait(), 10)
        await server.__aexit__()
        info = await asyncio.wait_for(task, 20)
    assert info.counts.succeeded >= 1
    assert set(info.counts.failed) <= {"disconnected", "refused"}
    assert info.counts.succeeded + sum(info.counts.failed.values()) == 8
    assert info.validity.verdict == "invalid"


async def test_a_request_that_hangs_times_out(trace: Trace, tmp_path: Path) -> None:
    engine = MockEngine(Latencies(prefill_tokens_per_s=1.0))
    options = replace(OPTIONS, n_queries=1, delivery="wait", timeout_s=0.2, warmup=0)
    info = await _replay(trace, tmp_path / "run", options, engine)
    assert info.counts.failed == {"timeout": 1}
    assert engine.open_runs == 0


async def test_what_cannot_be_replayed_is_said_before_anything_is_sent(
    trace: Trace, tmp_path: Path
) -> None:
    with pytest.raises(PlanError, match="write 25%, 2s or 500ms"):
        await _replay(trace, tmp_path / "run", replace(OPTIONS, answer_at=("soon",)))
    small = MockEngine(FAST, max_model_len=600)
    with pytest.raises(PlanError, match="use --context-tokens 84 or less"):
        await _replay(trace, tmp_path / "run", OPTIONS, small)
    assert not (tmp_path / "run").exists()


async def test_a_target_that_refuses_starts_nothing(
    trace: Trace, tmp_path: Path, unused_tcp_port: int
) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    async with RealtimeAdapter(url) as adapter:
        with pytest.raises(ServingError, match="cannot connect"):
            await Experiment(trace, adapter, OPTIONS, url=url).run(tmp_path / "run")
    assert not (tmp_path / "run").exists()


async def test_replaced_context_is_replayed_in_both_deliveries(
    changing_trace: Trace, tmp_path: Path
) -> None:
    # Changes 200 ms apart: what came before is prefilled by then, on a busy machine too.
    options = replace(OPTIONS, rate_qps=5, time_scale=4, warmup=0)
    await _replay(changing_trace, tmp_path / "run", options)
    run = Run.open(tmp_path / "run")
    rows = {row["request_id"]: row for row in run.requests().to_pylist()}
    assert {row["error_type"] for row in rows.values()} == {None}
    for number in range(2):
        stream, wait = rows[f"stream-{number:05d}"], rows[f"wait-{number:05d}"]
        assert stream["output_text"] == wait["output_text"]
        assert stream["prompt_tokens"] == wait["prompt_tokens"]
        assert wait["invalidated_tokens"] == 0
        assert stream["invalidated_tokens"] > 0
    chunks = [c for c in run.chunks().to_pylist() if c["request_id"] == "stream-00000"]
    assert [c["kind"] for c in chunks] == ["replace"] * 3 + ["append"]
    # Documents of 11 tokens: a b, then b c, then b c d, then b c d and e.
    assert [c["context_tokens"] for c in chunks] == [22, 22, 33, 44]
    assert [c["kept_tokens"] for c in chunks] == [0, 0, 22, 33]
    waited = [c for c in run.chunks().to_pylist() if c["request_id"] == "wait-00000"]
    assert [(c["kind"], c["tokens"]) for c in waited] == [("replace", 33), ("append", 11)]
    assert [len(c["doc_ids"]) for c in chunks] == [2, 2, 3, 1]
    assert [c["doc_ids"] for c in waited] == [c["doc_ids"] for c in chunks[2:]]


async def test_stable_order_keeps_more_than_the_searchs_order(
    changing_trace: Trace, tmp_path: Path
) -> None:
    kept = {}
    for order in ("score", "stable", "reverse"):
        options = replace(OPTIONS, order=order, n_queries=1, delivery="stream", warmup=0)
        await _replay(changing_trace, tmp_path / order, options)
        chunks = Run.open(tmp_path / order).chunks().to_pylist()
        kept[order] = sum(c["kept_tokens"] for c in chunks if c["request_id"] == "stream-00000")
    assert kept == {"score": 55, "stable": 55, "reverse": 33}
