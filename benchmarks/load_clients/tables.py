"""What was measured, for people and for machines."""

import math
from typing import Any

from client import Client, Figures

_COLUMNS: dict[str, str] = {
    "rate_qps": "rate",
    "achieved_qps": "achieved",
    "lag_p99_ms": "lag p99 ms",
    "ttft_error_p99_ms": "TTFT error p99 ms",
    "chunk_lag_p99_ms": "chunk lag p99 ms",
    "cpu_s_per_1k": "CPU-s per 1,000",
    "start_s": "start s",
    "peak_mb": "MB",
    "mock_cpu": "mock CPU",
    "others_cpu": "others' CPU",
    "honest": "honest",
}


def text_table(clients: dict[str, Client]) -> str:
    """A line for each client and rate."""
    heads = ["client", *_COLUMNS.values()]
    rows = [
        [name, *_cells(figures)]
        for name, client in clients.items()
        for figures in sorted(client.figures, key=lambda f: f.rate_qps)
    ]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = []
    for name, *cells in [heads, *rows]:
        right = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        lines.append("  ".join([name.ljust(widths[0]), *right]))
    return "\n".join(lines)


def _cells(figures: Figures) -> list[str]:
    return [_shown(getattr(figures, name)) for name in _COLUMNS]


def _shown(value: float | bool | None) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if value >= 1000 else f"{value:.4g}"


def by_rate(client: Client) -> dict[str, Any]:
    """The figures of one client: ``max_qps`` and others for all, the rest by rate."""

    def each(name: str) -> dict[str, Any]:
        return {f"{f.rate_qps:g}": _finite(getattr(f, name)) for f in client.figures}

    found: dict[str, Any] = {
        "max_qps": max((f.rate_qps for f in client.figures if f.honest), default=0),
        "start_s": max((f.start_s for f in client.figures), default=None),
        "peak_mb": max((f.peak_mb for f in client.figures), default=None),
    }
    names = ["lag_p99_ms", "ttft_error_p99_ms", "cpu_s_per_1k", "achieved_qps"]
    names += ["mock_cpu", "others_cpu"]
    if client.read_chunk_lag_ms is not None:
        names.append("chunk_lag_p99_ms")
    found = {name: _finite(value) for name, value in found.items()}
    return found | {name: each(name) for name in names}


def _finite(value: float | None) -> float | None:
    """JSON has no word for what was not measured but null."""
    return None if value is None or math.isnan(value) else value
