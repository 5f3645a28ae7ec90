"""A small trace with every kind of row, and ways to damage one."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.trace_writer import TraceWriter

COLLECTOR = Collector("crawl", "0.1.0", {"pages": 3, "site": "demo"}, 7)
DOCUMENTS = [
    Document.of_text(url=f"http://site/{n}", title=f"Page {n}", text=text, fetched_utc="2026-01-01")
    for n, text in enumerate(["alpha", "béta 😀", "gamma\n" * 300])
]
QUERIES = [
    Query("q-a", "What is alpha?", ("first", "the first"), 0, {"topic": "letters"}),
    Query("q-b", "¿Qué?", (), 250_000),
    Query("q-c", "Cut short?", (), 250_000),
    Query("q-d", "Never began", (), 900_000),
]
A, B, C = (document.doc_id for document in DOCUMENTS)
ARRIVALS = [
    Arrival("q-a", 0, ArrivalKind.SEARCH, 0, 1_000, meta={"hits": 3}),
    Arrival("q-a", 1, ArrivalKind.APPEND, 1_000, 5_000, (A, B)),
    Arrival("q-a", 2, ArrivalKind.APPEND, 1_000, 5_000, (), "timeout", "no answer in 4 s"),
    Arrival("q-a", 3, ArrivalKind.END, 5_000, 6_000),
    Arrival("q-b", 0, ArrivalKind.REPLACE, 0, 40, (A, C)),
    Arrival("q-b", 1, ArrivalKind.REPLACE, 40, 80, (C, B, A)),
    Arrival("q-b", 2, ArrivalKind.END, 80, 80),
    Arrival("q-c", 0, ArrivalKind.APPEND, 3, 9, (B,)),
]


def create(path: Path, **options: Any) -> TraceWriter:
    """A writer with the usual header."""
    header = {"name": "small", "licence": "CC-BY-4.0", "created_utc": "2026-01-02T03:04:05Z"}
    return TraceWriter.create(path, collector=COLLECTOR, **{**header, **options})


def fill(writer: TraceWriter) -> None:
    """Add the small trace, its queries' arrivals interleaved."""
    for document in DOCUMENTS:
        writer.add_document(document)
    for query in QUERIES:
        writer.add_query(query)
    for arrival in sorted(ARRIVALS, key=lambda one: one.seq):
        writer.add_arrival(arrival)


@pytest.fixture
def trace_path(tmp_path: Path) -> Path:
    """A finished small trace."""
    path = tmp_path / "small"
    with create(path) as writer:
        fill(writer)
        writer.finish()
    return path


Rewrite = Callable[[str, Callable[[pa.Table], pa.Table]], None]


@pytest.fixture
def rewrite(trace_path: Path) -> Rewrite:
    """Change one table of the trace so that only its content is wrong, not its bytes."""

    def change(name: str, edit: Callable[[pa.Table], pa.Table]) -> None:
        file = trace_path / name
        table = edit(pq.ParquetFile(file).read())
        pq.write_table(table, file)
        manifest = json.loads((trace_path / "manifest.json").read_text())
        entry = next(one for one in manifest["files"] if one["path"] == name)
        data = file.read_bytes()
        entry |= {"bytes": len(data), "sha256": sha256(data).hexdigest(), "rows": len(table)}
        (trace_path / "manifest.json").write_text(json.dumps(manifest))

    return change


def set_value(row: int, column: str, value: object) -> Callable[[pa.Table], pa.Table]:
    """An edit that puts one value in one row."""

    def edit(table: pa.Table) -> pa.Table:
        values = table.column(column).to_pylist()
        values[row] = value
        place = table.schema.get_field_index(column)
        field = table.schema.field(column)
        return table.set_column(place, field, pa.array(values, field.type))

    return edit


@pytest.fixture
def small() -> Any:
    """The records and helpers of this module; tests are not importable packages."""
    import sys

    return sys.modules[__name__]
