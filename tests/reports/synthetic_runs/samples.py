"""What a client and a server say of themselves while a run goes on."""

import numpy as np
import pyarrow as pa

from s2l.replayer.run import CLIENT_SCHEMA, SERVER_SCHEMA


def client_samples(span_us: int, random: np.random.Generator) -> pa.Table:
    """A sample every 250 ms of both passes."""
    rows = [
        {
            "delivery": delivery,
            "time_us": position * span_us + at,
            "loop_lag_us": int(random.gamma(2, 150)),
            "cpu_s": at / 1e6 * 0.3,
            "rss_bytes": 90_000_000,
            "gc_pause_us": at // 1_000,
            "in_flight": int(random.integers(0, 20)),
        }
        for position, delivery in enumerate(("stream", "wait"))
        for at in range(0, span_us, 250_000)
    ]
    return pa.Table.from_pylist(rows, schema=CLIENT_SCHEMA)


def server_samples(span_us: int, random: np.random.Generator) -> pa.Table:
    """A sample a second of both passes: gauges that move and counters that rise."""
    rows = []
    for position, delivery in enumerate(("stream", "wait")):
        for second in range(span_us // 1_000_000):
            values = {
                "running": float(random.integers(1, 16)),
                "waiting": float(random.integers(0, 5)),
                "kv_usage": float(random.uniform(0.2, 0.8)),
                "preemptions": float(second // 10),
                "prefix_queries": 1_000.0 * second,
                "prefix_hits": (700.0 if delivery == "stream" else 100.0) * second,
            }
            ids = {"delivery": delivery, "time_us": position * span_us + second * 1_000_000}
            rows += [ids | {"name": name, "value": value} for name, value in values.items()]
    return pa.Table.from_pylist(rows, schema=SERVER_SCHEMA)
