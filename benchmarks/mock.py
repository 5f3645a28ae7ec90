"""How many requests a second the mock server can serve exactly, and how exact it is.

The mock runs on one core, a lean client on another; where there is one core, both share it. Every
request is a streamed completion of 32 tokens over a kept-alive connection, with a true time to
first token of 50 ms and 10 ms a token. Arrivals are a seeded Poisson process: at a constant rate
that divides 10 ms, the tokens of all requests would be due at the same moments. The timing error is
the mock's own: when each token was written (after the system call) against when it was due, over
all tokens of a point.

``max_qps`` is the highest rate of a list at which the 99th percentile of that error is under 5 ms,
all requests were answered in full, and the last was sent less than 100 ms behind its time.
``timing_error_p99_ms`` is the error at 300 requests a second. What the client saw beside it
(``ttft_error_p99_ms``: first token less sending less 50 ms) holds both sides' errors, and the
kernel's; ``mock_cpu`` is CPU seconds a second of the mock.
Prints the figures as one JSON object on the last line; run it with the environment's Python:
``.venv/bin/python benchmarks/mock.py [--quick]``.
"""

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import psutil

from s2l.serving_adapter.event_loop import new_event_loop
from s2l.serving_adapter.precise_timer import PreciseTimer

TTFT_MS, TPOT_MS, TOKENS = 50, 10, 32
RATES = (300, 600, 900, 1200, 1500, 1750, 2000, 2250, 2500, 2750, 3000, 3500, 4000)
REFERENCE_QPS = 300
LIMIT_MS, BEHIND_MS = 5.0, 100.0
NS = 1_000_000_000


@dataclass
class Point:
    """What the client saw at one rate, in nanoseconds."""

    ttft_error_ns: list[int] = field(default_factory=list)
    lag_ns: list[int] = field(default_factory=list)
    behind_ns: int = 0
    complete: int = 0
    tokens: int = 0


class Client(asyncio.Protocol):
    """One connection: counts tokens, and stamps the first of them."""

    def __init__(self, load: "Load") -> None:
        self._load = load
        self._transport = cast(asyncio.Transport, None)
        self._sent_ns = 0
        self._waits = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._load.free.append(self)

    def send(self, due_ns: int) -> None:
        """Send one request."""
        self._waits = True
        self._transport.write(self._load.request)
        self._sent_ns = time.monotonic_ns()
        self._load.point.lag_ns.append(self._sent_ns - due_ns)

    def data_received(self, data: bytes) -> None:
        point = self._load.point
        if self._waits and b"data: " in data:
            now_ns = time.monotonic_ns()
            point.ttft_error_ns.append(now_ns - self._sent_ns - TTFT_MS * 1_000_000)
            self._waits = False
        point.tokens += data.count(b'"text"')
        if data.endswith(b"0\r\n\r\n"):
            point.complete += 1
            self._load.free.append(self)
            self._load.note_complete()


class Load:
    """Sends each request at its absolute time."""

    def __init__(self, host: str, port: int, timer: PreciseTimer) -> None:
        self._host, self._port, self._timer = host, port, timer
        self.free: list[Client] = []
        self.point = Point()
        self._planned = 0
        self._all_complete = asyncio.Event()
        body = {
            "model": "mock",
            "prompt": "What is the capital of France? Answer in one word, please.",
            "max_tokens": TOKENS,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        encoded = json.dumps(body).encode()
        self.request = (
            f"POST /v1/completions HTTP/1.1\r\nhost: {host}:{port}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(encoded)}\r\n\r\n"
        ).encode() + encoded

    async def connect(self, connections: int) -> None:
        """Have that many connections."""
        loop = asyncio.get_running_loop()
        for _ in range(connections - len(self.free)):
            await loop.create_connection(lambda: Client(self), self._host, self._port)

    async def run(self, rate_qps: int, duration_s: float) -> Point:
        """Send for so long, and wait until all are answered, or 10 s."""
        self.point, self._planned = Point(), int(rate_qps * duration_s)
        self._all_complete.clear()
        gaps_s = np.random.default_rng(0).exponential(1 / rate_qps, self._planned)
        offsets_ns = (np.cumsum(gaps_s) * NS).astype(np.int64).tolist()
        start_ns = time.monotonic_ns() + 100_000_000
        for offset_ns in offsets_ns:
            due_ns = start_ns + offset_ns
            await self._timer.sleep_until_ns(due_ns)
            if not self.free:
                await self.connect(64)
            self.free.pop().send(due_ns)
        self.point.behind_ns = time.monotonic_ns() - start_ns - offsets_ns[-1]
        try:
            async with asyncio.timeout(10):
                await self._all_complete.wait()
        except TimeoutError:
            print(f"{self._planned - self.point.complete} not answered", file=sys.stderr)
        return self.point

    def note_complete(self) -> None:
        """One more request is answered."""
        if self.point.complete == self._planned:
            self._all_complete.set()


@contextmanager
def mock_server(core: int) -> Iterator[tuple[str, psutil.Process]]:
    """A mock on that core; its address and its process."""
    command = [sys.executable, "-m", "s2l", "mock", "--port", "0", "--json"]
    options = ["--ttft-ms", str(TTFT_MS), "--tpot-ms", str(TPOT_MS)]
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        os.sched_setaffinity(process.pid, {core})
        assert process.stdout is not None
        try:
            url = json.loads(process.stdout.readline())["url"]
            yield url, psutil.Process(process.pid)
        finally:
            process.terminate()


def call(url: str, method: str = "GET") -> Any:
    """One of the mock's own endpoints."""
    with urllib.request.urlopen(urllib.request.Request(url, method=method)) as response:
        body = response.read()
    return json.loads(body) if body else None


async def measure(
    url: str, mock: psutil.Process, rate_qps: int, duration_s: float
) -> dict[str, Any]:
    """One point of the table."""
    host, port = url.removeprefix("http://").split(":")
    timer = PreciseTimer(asyncio.get_running_loop())
    load = Load(host, int(port), timer)
    latency_s = (TTFT_MS + TPOT_MS * TOKENS) / 1000
    await load.connect(int(rate_qps * latency_s * 1.2) + 64)
    call(f"{url}/mock/timing", "DELETE")
    gc.collect()
    gc.disable()
    cpu_s, start_s = sum(mock.cpu_times()[:2]), time.monotonic()
    point = await load.run(rate_qps, duration_s)
    cpu_s = sum(mock.cpu_times()[:2]) - cpu_s
    elapsed_s = time.monotonic() - start_s
    gc.enable()
    timing = call(f"{url}/mock/timing")
    timer.close()
    planned = int(rate_qps * duration_s)
    errors_ms = np.abs(np.array(point.ttft_error_ns)) / 1e6
    return {
        "qps": rate_qps,
        "behind_ms": round(point.behind_ns / 1e6, 3),
        "complete": point.complete == planned and point.tokens == planned * TOKENS,
        "timing_error_p50_ms": timing["p50_ms"],
        "timing_error_p99_ms": timing["p99_ms"],
        "ttft_error_p50_ms": round(float(np.percentile(errors_ms, 50)), 3),
        "ttft_error_p99_ms": round(float(np.percentile(errors_ms, 99)), 3),
        "mock_cpu": round(cpu_s / elapsed_s, 3),
        "client_lag_p99_ms": round(float(np.percentile(point.lag_ns, 99)) / 1e6, 3),
    }


def exact(point: dict[str, Any]) -> bool:
    """Whether the mock kept its times at this rate."""
    in_time = point["timing_error_p99_ms"] < LIMIT_MS
    return bool(in_time and point["complete"] and point["behind_ms"] < BEHIND_MS)


def measure_all(duration_s: float, rates: tuple[int, ...]) -> dict[str, Any]:
    """Each rate until one is too much."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    points: list[dict[str, Any]] = []
    runner = asyncio.Runner(loop_factory=new_event_loop)
    with mock_server(cores[0]) as (url, mock), runner:
        runner.run(
            measure(url, mock, 100, 1.0)
        )  # connections, caches and code are warm from here on
        for rate_qps in rates:
            points.append(runner.run(measure(url, mock, rate_qps, duration_s)))
            print(json.dumps(points[-1]), file=sys.stderr)
            if not exact(points[-1]):
                break
    reference = next(point for point in points if point["qps"] == REFERENCE_QPS)
    return {
        "cores": len(cores),
        "max_qps": max((point["qps"] for point in points if exact(point)), default=0),
        "timing_error_p99_ms": reference["timing_error_p99_ms"],
        "ttft_error_p99_ms": reference["ttft_error_p99_ms"],
        "points": points,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 s a rate, and fewer of them")
    quick = parser.parse_args().quick
    rates = RATES[::2] if quick else RATES
    print(json.dumps({"quick": quick, **measure_all(3.0 if quick else 15.0, rates)}))


if __name__ == "__main__":
    main()
