"""The client's own error on this machine, measured against a server whose times are known.

A mock in a process of its own answers each request after 50 ms and logs when it did what, by the
clock that the client reads, too. Lag is how much later than intended a request was sent; the error
of TTFT is what the client saw less what the mock did. The result is kept in the user's cache folder
for as long as machine and versions stay the same.
"""

import asyncio
import hashlib
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import platformdirs

from s2l.replayer.clock import MonotonicClock
from s2l.replayer.garbage import GarbageControl
from s2l.replayer.pacer import Pacer
from s2l.replayer.passes import Pass
from s2l.replayer.provenance import host, packages
from s2l.replayer.record import QuerySend, RequestRecord
from s2l.replayer.replayer import Replayer
from s2l.replayer.server_http import ServerHttp
from s2l.serving_adapter.base import Prompt, ServingAdapter
from s2l.serving_adapter.mock.request_log import Entry
from s2l.serving_adapter.openai.adapter import OpenAiAdapter

RATE_QPS: Final = 100.0
REQUESTS: Final = 300
TTFT_S: Final = 0.050
TPOT_S: Final = 0.010
OUTPUT_TOKENS: Final = 8
LEAD_US: Final = 100_000
GOOD_MS: Final = 5.0
"""A worse result is that of a machine that was busy: it is not kept."""


async def calibrated(folder: Path | None = None) -> dict[str, Any]:
    """The calibration of this machine, from the cache or measured now (some four seconds).

    Raises:
        ServingError: the mock, started here, did not answer.
    """
    folder = folder or Path(platformdirs.user_cache_dir("s2l"))
    file = folder / f"calibration-{_fingerprint()}.json"
    with suppress(OSError, msgspec.MsgspecError):
        kept: dict[str, Any] = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
        return kept
    found = await calibrate()
    if max(found["lag_p99_ms"], found["ttft_error_p99_ms"]) <= GOOD_MS:
        with suppress(OSError):  # no cache folder: it is measured again next time
            folder.mkdir(parents=True, exist_ok=True)
            file.write_bytes(msgspec.json.encode(found))
    return found


async def calibrate(rate_qps: float = RATE_QPS, requests: int = REQUESTS) -> dict[str, Any]:
    """Measure: ``RunInfo.calibration``."""
    async with _mock() as url, OpenAiAdapter(url, api="completions") as adapter:
        await adapter.probe()
        clock = MonotonicClock()
        pacer = Pacer(clock)
        try:
            records = await _replayed(adapter, pacer, rate_qps, requests)
        finally:
            clock.close()
        log = await asyncio.to_thread(_log, url)
    lag_ms = [(r.start_us or 0) / 1e3 - r.start_intended_us / 1e3 for r in records]
    error_ms = _ttft_errors_ms(records, log)
    return {
        "lag_p99_ms": round(float(np.percentile(lag_ms, 99)), 3),
        "ttft_error_p50_ms": round(float(np.percentile(error_ms, 50)), 3),
        "ttft_error_p99_ms": round(float(np.percentile(error_ms, 99)), 3),
        "rate_qps": rate_qps,
        "requests": requests,
        "adapter": adapter.name,
        "created_utc": datetime.now(UTC).isoformat(timespec="seconds"),
    }


async def _replayed(
    adapter: ServingAdapter, pacer: Pacer, rate_qps: float, n: int
) -> list[RequestRecord]:
    """The records of so many requests at a constant rate, in the order of their starts."""
    numbers = np.arange(n)
    starts_us = np.rint(numbers * (1e6 / rate_qps)).astype(np.int64)
    todo = Pass("calibration", "wait", None, rate_qps, (QuerySend("q", 0),), numbers, starts_us)
    request = adapter.prepare(Prompt("", (), "How late is this client?", OUTPUT_TOKENS))
    records: list[RequestRecord] = []
    start_us = pacer.now_us() + LEAD_US
    with GarbageControl():
        await Replayer(todo, [request], pacer, records.append, start_us=start_us).run()
    return sorted(records, key=lambda record: record.number)


def _ttft_errors_ms(records: list[RequestRecord], log: list[Entry]) -> list[float]:
    """What each request saw less what the mock did: both are in the order of their starts."""
    true_us = [
        (entry.first_ns - entry.arrived_ns) / 1e3
        for entry in sorted(log, key=lambda entry: entry.arrived_ns)
        if entry.first_ns is not None
    ]
    seen_us = [r.token_us[0] - (r.context_us or 0) for r in records if r.token_us]
    if len(true_us) != len(seen_us):  # some failed: by what the mock was told to do, then
        true_us = [TTFT_S * 1e6] * len(seen_us)
    errors = [abs(seen - true) / 1e3 for seen, true in zip(seen_us, true_us, strict=True)]
    return errors or [float("inf")]


def _log(url: str) -> list[Entry]:
    server = ServerHttp(url)
    try:
        _, lines = server.ask("GET", "/mock/log")
        return [msgspec.json.decode(line, type=Entry) for line in lines.splitlines()]
    finally:
        server.close()


@asynccontextmanager
async def _mock() -> AsyncIterator[str]:
    """The address of a mock that ends with this block."""
    command = [sys.executable, "-m", "s2l.replayer.calibration_server", str(TTFT_S), str(TPOT_S)]
    child = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdin is not None
    try:
        yield (await child.stdout.readline()).decode().strip()
    finally:
        child.stdin.close()
        await child.wait()


def _fingerprint() -> str:
    known = msgspec.json.encode({"host": host(), "packages": packages()}, order="deterministic")
    return hashlib.sha256(known).hexdigest()[:16]
