"""Figures over time: what was completed, what the server said, how late the client was."""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports import metrics
from s2l.reports.attainment import meets
from s2l.reports.figure import Figure
from s2l.reports.metrics import Floats
from s2l.reports.passes import of_delivery, since_s
from s2l.reports.series import Series, largest_per_bin, per_second
from s2l.reports.slo import Slo
from s2l.reports.time_chart import time_chart

Starts = Mapping[str, int]
"""When each delivery's pass began, in µs of the run's clock."""


def throughput_figures(
    requests: pa.Table, starts: Starts, slos: tuple[Slo, ...]
) -> Iterator[Figure]:
    """Requests completed a second, and those of them that met every objective."""
    done = metrics.succeeded(requests)
    yield from _per_second_figure(
        done, requests, starts, "throughput", "Completed", "Requests completed / s"
    )
    if slos:
        good = requests.filter(pa.array(meets(requests, slos)))
        title = "Requests within the objectives / s"
        yield from _per_second_figure(good, requests, starts, "goodput", "Goodput", title)


def _per_second_figure(
    counted: pa.Table, requests: pa.Table, starts: Starts, key: str, heading: str, title: str
) -> Iterator[Figure]:
    lines = {}
    for name, start in starts.items():
        ends = since_s(of_delivery(requests, name), "end_us", start)
        last = float(np.nanmax(ends, initial=0.0))
        lines[name] = per_second(since_s(of_delivery(counted, name), "end_us", start), last)
    if spec := time_chart(lines, title, steps=True):
        yield Figure(key, heading, f"{title} over the time of each pass", spec)


_SERVER: Final = {
    "running": ("Requests running", False),
    "waiting": ("Requests queued", False),
    "kv_usage": ("KV cache in use", True),
}


def server_figures(server: pa.Table, starts: Starts) -> Iterator[Figure]:
    """Running and queued requests and KV cache usage, as the server's metrics had them."""
    for metric, (title, share) in _SERVER.items():
        mine = server.filter(pc.equal(server["name"], metric))
        lines = {name: _sampled(mine, "value", name, start) for name, start in starts.items()}
        if spec := time_chart(lines, title, share=share, steps=True):
            yield Figure(f"server-{metric}", title, f"{title} over the time of each pass", spec)


def client_figures(client: pa.Table, requests: pa.Table, starts: Starts) -> Iterator[Figure]:
    """Lag of the client's sends and of its event loop, its CPU and the requests in flight."""
    lags = {
        name: _largest(mine, metrics.schedule_lag_s(mine) * 1e3, "start_intended_us", start)
        for name, start in starts.items()
        for mine in [of_delivery(requests, name)]
    }
    loop = {n: _scaled(_sampled(client, "loop_lag_us", n, s), 1e-3) for n, s in starts.items()}
    flight = {n: _sampled(client, "in_flight", n, s) for n, s in starts.items()}
    cpu = {n: _cpu(of_delivery(client, n), s) for n, s in starts.items()}
    for key, title, lines, share in (
        ("schedule-lag", "Schedule lag, ms", lags, False),
        ("loop-lag", "Event-loop lag, ms", loop, False),
        ("in-flight", "Requests in flight", flight, False),
        ("client-cpu", "Client CPU, cores", cpu, False),
    ):
        if spec := time_chart(lines, title, share=share):
            name = title.split(",")[0]
            yield Figure(key, name, f"{title} over the time of each pass", spec)


def _sampled(table: pa.Table, column: str, delivery: str, start_us: int) -> Series:
    mine = of_delivery(table, delivery)
    return _largest(mine, metrics.column(mine, column), "time_us", start_us)


def _largest(table: pa.Table, values: Floats, time: str, start_us: int) -> Series:
    return largest_per_bin(since_s(table, time, start_us), values)


def _scaled(line: Series, factor: float) -> Series:
    return Series(line.time_s, line.values * factor)


def _cpu(samples: pa.Table, start_us: int) -> Series:
    """CPU seconds per second between neighbouring samples of a worker, the busiest worker's."""
    worker = np.nan_to_num(metrics.column(samples, "worker"), nan=-1)
    order = np.lexsort((metrics.column(samples, "time_us"), worker))
    time_s = since_s(samples, "time_us", start_us)[order]
    used = np.diff(metrics.column(samples, "cpu_s")[order])
    passed, same = np.diff(time_s), np.diff(worker[order]) == 0
    fine = same & (passed > 0)
    return largest_per_bin(time_s[1:][fine], used[fine] / passed[fine])
