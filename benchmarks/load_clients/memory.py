"""Whether the replayer's memory grows with the number of its requests."""

from pathlib import Path
from typing import Any

import numpy as np
from client import Client
from judging import run_point
from own_clients import SHORT, ours
from point import Point
from setting import mock, say
from traces import write_trace

from s2l.replayer.run import Run

RATE_QPS, TOKENS = 1500.0, 2
MOMENTS = 12


def measure_memory(work: Path, requests: int, *, first: bool) -> dict[str, Any]:
    """Replay so many short requests; the resident set's slope over the second half of them, since
    the first fills what is reused afterwards."""
    trace = write_trace(work / "memory", queries=1000, chunks=1, words=SHORT, gap_us=0)
    folder = work / "memory-run"
    folder.mkdir()
    client = Client(ours("openai", trace, TOKENS), lambda _: [], (RATE_QPS,))
    with mock(tpot_ms=client.tpot_ms, first=first) as server:
        point = Point(server.url, "constant", RATE_QPS, requests, SHORT, Path(), folder)
        figures = run_point(client, point, server, first=first)
    found = _growth(folder / "run", requests)
    say(f"lag p99 of the last requests: {figures.lag_p99_ms} ms")
    return found


def _growth(run: Path, requests: int) -> dict[str, Any]:
    samples = Run.open(run).client().to_pydict()
    time_s, rss = np.array(samples["time_us"]) / 1e6, np.array(samples["rss_bytes"])
    done = np.clip((time_s - time_s[0]) * RATE_QPS, 0, requests)
    late = done >= requests / 2
    shown = np.linspace(0, len(rss) - 1, MOMENTS).round().astype(int)
    over_time = zip(time_s[shown] - time_s[0], rss[shown] / 1e6, strict=True)
    return {
        "requests": requests,
        "bytes_per_request": round(float(np.polyfit(done[late], rss[late], 1)[0]), 1),
        "rss_mb": round(float(rss[-1]) / 1e6, 1),
        "rss_mb_by_s": {f"{at_s:.0f}": round(float(mb), 1) for at_s, mb in over_time},
    }
