"""Runs a client at one rate, and judges it by the mock's log."""

import json
import os
import subprocess
import time
import urllib.request
from typing import Any

import numpy as np
import psutil
from client import Client, Figures
from point import Point
from process_meter import ProcessMeter
from setting import TTFT_MS, Mock, Rank, pin, rank_threads, say

CLIENT_EXTRA_S = 60


def run_point(client: Client, point: Point, mock: Mock, *, first: bool) -> Figures:
    """One client at one rate, judged by the mock's log."""
    figures = Figures(point.rate_qps, asked=point.requests)
    client.prepare(point)
    rank: Rank = "usual" if not first else "real-time" if client.one_process else "high"
    begun_s, mock_cpu_s, all_cpu_s = time.monotonic(), _cpu_s(mock.pid), _all_cpu_s()
    limit_s = point.requests / point.rate_qps * 3 + CLIENT_EXTRA_S
    with (point.folder / "log").open("wb") as log:
        process = subprocess.Popen(
            client.command(point), stdout=log, stderr=log, preexec_fn=lambda: pin(-1, rank)
        )
        meter = ProcessMeter(process.pid, rank_threads if rank == "real-time" else lambda _: None)
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            meter.end_all()
            code = process.wait()
    if code:
        say((point.folder / "log").read_text(errors="replace")[-500:])
        return figures
    mock_cpu_s, all_cpu_s = _cpu_s(mock.pid) - mock_cpu_s, _all_cpu_s() - all_cpu_s
    others_s = all_cpu_s - mock_cpu_s - meter.cpus_s[-1]
    figures.others_cpu = round(max(0.0, others_s) / (time.monotonic() - begun_s), 3)
    judge(figures, point, client, meter, begun_s)
    figures.mock_cpu = round(mock_cpu_s * figures.achieved_qps / max(1, point.requests), 3)
    return figures


def judge(
    figures: Figures, point: Point, client: Client, meter: ProcessMeter, begun_s: float
) -> None:
    """Fill in what the mock's log and the client's own report say."""
    log = _log(point, client)
    if not log:
        return
    arrived_ms = np.array([entry["arrived_ns"] for entry in log]) / 1e6
    offsets_ms = arrived_ms - client.due_us(point)[-len(log) :] / 1e3
    figures.answered = len(log)
    on_time_ms = np.percentile(offsets_ms, 1)
    figures.lag_p99_ms = _p99(offsets_ms - on_time_ms)
    first_s, last_s = float(arrived_ms[0]) / 1e3, float(arrived_ms[-1]) / 1e3
    figures.achieved_qps = round((len(log) - 1) / max(1e-9, last_s - first_s), 2)
    cpu_s = meter.cpu_between_s(first_s, last_s)
    figures.cpu_s_per_1k = round(1e3 * cpu_s / len(log), 3)
    figures.start_s, figures.peak_mb = round(first_s - begun_s, 2), round(meter.peak_mb, 1)
    ttft_ms = np.array(client.read_ttft_ms(point))[-len(log) :]
    true_ms = np.array([(e["first_ns"] - e["arrived_ns"]) / 1e6 for e in log if e.get("first_ns")])
    if len(ttft_ms) != len(true_ms):
        true_ms = np.full(len(ttft_ms), float(TTFT_MS))
    figures.ttft_error_p99_ms = _p99(np.abs(ttft_ms - true_ms))
    if client.read_chunk_lag_ms is not None:
        figures.chunk_lag_p99_ms = _p99(client.read_chunk_lag_ms(point))


def _cpu_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _all_cpu_s() -> float:
    """Of all programs but this one, and what the host took from this machine."""
    times = psutil.cpu_times()
    all_s = times.user + times.nice + times.system + getattr(times, "steal", 0.0)
    return float(all_s) - _cpu_s(os.getpid())


def _log(point: Point, client: Client) -> list[dict[str, Any]]:
    """The mock's entries on the requests that count, in the order of their arrival: some clients
    send a request before, to see whether all is well, and some after."""
    with urllib.request.urlopen(f"{point.url}/mock/log") as answer:
        log = [json.loads(line) for line in answer.read().splitlines()]
    log = sorted((e for e in log if e["outcome"] == "ok"), key=lambda e: int(e["arrived_ns"]))
    return log[: len(log) - client.sent_after][-point.requests :]


def _p99(values: Any) -> float:
    return round(float(np.percentile(values, 99)), 3) if len(values) else float("nan")
