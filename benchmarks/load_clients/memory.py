"""Whether the replayer's memory grows with the number of its requests."""

from pathlib import Path
from typing import Any

import numpy as np
from client import Client
from judging import run_point
from own_clients import SHORT, ours
from peers import Point
from setting import mock, say
from traces import write_trace

from s2l.replayer.run import Run

REQUESTS, QUICK_REQUESTS = 200_000, 40_000
RATE_QPS, TOKENS = 1500.0, 2


def measure_memory(work: Path, *, quick: bool, first: bool) -> dict[str, Any]:
    """Replay many short requests; the resident set's slope over the second half of them, since the
    first fills what is reused afterwards."""
    requests = QUICK_REQUESTS if quick else REQUESTS
    trace = write_trace(work / "memory", queries=1000, chunks=1, words=SHORT, gap_us=0)
    folder = work / "memory-run"
    folder.mkdir()
    client = Client(ours("openai", trace, TOKENS), lambda _: [], (round(RATE_QPS),))
    with mock(tpot_ms=client.tpot_ms, first=first) as server:
        point = Point(server.url, RATE_QPS, requests, SHORT, Path(), folder)
        figures = run_point(client, point, server, first=first)
    found = _slope(folder / "run", requests)
    say(f"memory: {found}, lag p99 {figures.lag_p99_ms} ms")
    return found


def _slope(run: Path, requests: int) -> dict[str, Any]:
    samples = Run.open(run).client().to_pydict()
    time_s, rss = np.array(samples["time_us"]) / 1e6, np.array(samples["rss_bytes"])
    done = np.clip((time_s - time_s[0]) * RATE_QPS, 0, requests)
    late = done >= requests / 2
    per_request = float(np.polyfit(done[late], rss[late], 1)[0])
    return {
        "requests": requests,
        "bytes_per_request": round(per_request, 1),
        "rss_mb": [round(float(value) / 1e6, 1) for value in (rss[late][0], rss[late][-1])],
    }
