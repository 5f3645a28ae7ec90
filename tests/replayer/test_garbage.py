"""Garbage collection keeps out of what is measured, however much there is in memory."""

from dataclasses import replace
from pathlib import Path

from s2l.replayer.experiment import Experiment
from s2l.replayer.options import ReplayOptions
from s2l.replayer.run import Run
from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.mock.server import MockServer
from s2l.serving_adapter.openai.adapter import OpenAiAdapter
from s2l.workloads.trace import Trace

OPTIONS = ReplayOptions(rate_qps=20, max_tokens=2, n_queries=4, warmup=0, delivery="wait")


async def test_many_objects_make_no_first_request_late(trace: Trace, tmp_path: Path) -> None:
    """Looking through them takes longer than the lead that a pass has."""
    many = [[n] for n in range(4_000_000)]
    async with (
        MockServer(MockEngine(Latencies(overhead_s=0.001))) as server,
        OpenAiAdapter(server.url) as adapter,
    ):
        options = replace(OPTIONS, time_scale=0.1)
        await Experiment(trace, adapter, options, url=server.url).run(tmp_path / "run")
    assert len(many) == 4_000_000
    rows = Run.open(tmp_path / "run").requests().to_pylist()
    assert max(row["start_us"] - row["start_intended_us"] for row in rows) < 100_000
