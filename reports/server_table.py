"""What the server counted during each pass, as text cells."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports.metrics import Floats, column, ratio
from s2l.reports.passes import of_delivery
from s2l.reports.tables import FigureRow
from s2l.reports.units import number, percent


def server_figures(server: pa.Table, deliveries: Sequence[str]) -> list[FigureRow]:
    """Peaks and counts by delivery; empty where nothing was scraped."""
    if not server.num_rows:
        return []
    passes = [of_delivery(server, name) for name in deliveries]
    return [row for row in _rows(passes) if any(cell != "n/a" for cell in row.cells)]


def _rows(passes: list[pa.Table]) -> Iterator[FigureRow]:
    def row(label: str, explains: str, cells: list[str]) -> FigureRow:
        return FigureRow(label, explains, tuple(cells))

    yield row("Requests running", "most", [number(_most(one, "running")) for one in passes])
    yield row("Requests queued", "most", [number(_most(one, "waiting")) for one in passes])
    yield row("KV cache in use", "most", [percent(_most(one, "kv_usage")) for one in passes])
    yield row("Preemptions", "", [number(_increase(one, "preemptions")) for one in passes])
    hits = [
        ratio(_increase(one, "prefix_hits"), _increase(one, "prefix_queries")) for one in passes
    ]
    yield row("Prefix cache hits", "of the tokens looked up", [percent(share) for share in hits])


def _values(server: pa.Table, name: str) -> Floats:
    mine = server.filter(pc.equal(server["name"], name)).sort_by("time_us")
    return column(mine, "value")


def _most(server: pa.Table, name: str) -> float | None:
    values = _values(server, name)
    return _count(float(values.max())) if values.size else None


def _increase(server: pa.Table, name: str) -> float | None:
    """How much a counter rose; a fall is a restart, and counts from 0."""
    values = _values(server, name)
    if values.size < 2:
        return None
    steps = np.diff(values)
    return _count(float(np.where(steps >= 0, steps, values[1:]).sum()))


def _count(value: float) -> float:
    """A whole number as one, so that it is written as a count."""
    return int(value) if value.is_integer() else value
