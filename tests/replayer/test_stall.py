"""A server that pauses: what users would have felt is what is reported, no less."""

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from s2l.replayer.clock import MonotonicClock
from s2l.replayer.experiment import Experiment, Observer
from s2l.replayer.options import ReplayOptions
from s2l.replayer.run import Run
from s2l.serving_adapter.openai.adapter import OpenAiAdapter
from s2l.workloads.trace import Trace

TTFT_S, PAUSE_S, BEFORE_S = 0.050, 2.0, 1.2
OPTIONS = ReplayOptions(
    rate_qps=50, arrivals="constant", n_queries=250, delivery="wait", max_tokens=2, warmup=0
)


@dataclass
class Pause:
    """The server's process is stopped for a while, by the system."""

    pid: int
    clock: MonotonicClock
    from_ns: int = 0
    to_ns: int = 0

    async def happen(self) -> None:
        await asyncio.sleep(BEFORE_S)
        os.kill(self.pid, signal.SIGSTOP)
        self.from_ns = self.clock.now_ns()
        await asyncio.sleep(PAUSE_S)
        self.to_ns = self.clock.now_ns()
        os.kill(self.pid, signal.SIGCONT)


async def test_a_pause_of_two_seconds_is_seen_in_full(trace: Trace, tmp_path: Path) -> None:
    child = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "s2l.replayer.calibration_server", str(TTFT_S), "0.001"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdin is not None
    url = (await child.stdout.readline()).decode().strip()
    clock = MonotonicClock()
    pause = Pause(child.pid, clock)
    tasks: list[asyncio.Task[None]] = []
    observer = Observer(on_pass=lambda *_: tasks.append(asyncio.create_task(pause.happen())))
    async with OpenAiAdapter(url, api="completions") as adapter:
        experiment = Experiment(trace, adapter, OPTIONS, url=url, observer=observer, clock=clock)
        info = await experiment.run(tmp_path / "run")
    await tasks[0]
    child.stdin.close()
    await child.wait()
    assert info.counts.succeeded == 250
    rows = Run.open(tmp_path / "run").requests().to_pydict()
    assert experiment.start_ns is not None
    pause_us = [(ns - experiment.start_ns) / 1e3 for ns in (pause.from_ns, pause.to_ns)]
    due_us, sent_us = np.array(rows["context_intended_us"]), np.array(rows["context_us"])
    first_us = np.array(rows["first_token_us"])
    # A request that is due within the pause is read at its end; one that waits for its first token
    # when it begins has that at its end.
    ends_us = due_us + TTFT_S * 1e6
    read_late = (due_us >= pause_us[0]) & (due_us < pause_us[1])
    told_late = ~read_late & (ends_us >= pause_us[0]) & (ends_us < pause_us[1])
    truth_us = np.where(read_late, pause_us[1] - due_us + TTFT_S * 1e6, TTFT_S * 1e6)
    truth_us = np.where(told_late, pause_us[1] - due_us, truth_us)
    assert read_late.sum() > 90
    seen, true = (np.percentile(us, 99) / 1e6 for us in (first_us - due_us, truth_us))
    assert abs(seen - true) / true < 0.05
    assert true > 0.95 * PAUSE_S
    # What was sent after it knows nothing of it; while the server catches up, nothing is sent.
    after = sent_us > pause_us[1] + 200_000
    assert after.sum() > 50
    assert np.median(first_us[after] - sent_us[after]) / 1e6 < TTFT_S + 0.010
