"""Runs of one workload at several rates."""

from pathlib import Path

import msgspec
import numpy as np
from synthetic_runs.request_rows import request_table, timed
from synthetic_runs.run_folder import run_info, write_run

from s2l.replayer.run import Validity

SWEEP_RATES = (0.5, 1.0, 2.0, 4.0)


def sweep(path: Path, n_queries: int = 120) -> Path:
    """A sweep of four rates whose latencies grow with the rate."""
    path.mkdir(parents=True)
    points = []
    for at, rate in enumerate(SWEEP_RATES):
        name = f"rate-{rate:g}"
        points.append({"rate_qps": rate, "run": name})
        _at_rate(path / name, rate, 0.03 * 2.2**at, 0.12 * 2.2**at, n_queries)
    (path / "sweep.json").write_bytes(msgspec.json.encode({"points": points}))
    return path


def _at_rate(path: Path, rate: float, stream_s: float, wait_s: float, n_queries: int) -> Path:
    random = np.random.default_rng(int(rate * 10))
    requests = []
    for position, (delivery, median_s) in enumerate((("stream", stream_s), ("wait", wait_s))):
        for i, ttft_s in enumerate(random.lognormal(np.log(median_s), 0.6, n_queries).tolist()):
            start = position * 10**9 + int(i / rate * 1e6)
            requests.append(timed(f"q{i}", delivery, start, ttft_s))
    info = run_info(
        schedule={"process": "poisson", "rate_qps": rate},
        options={"temperature": 0, "slo": "ttft_s<500ms"},
        validity=Validity(verdict="valid"),
    )
    queries = [(f"q{i}", f"Question {i}?", ["functools"]) for i in range(n_queries)]
    return write_run(path, request_table(*requests), info=info, queries=queries)
