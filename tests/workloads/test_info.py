"""Figures of a trace, known by hand."""

from pathlib import Path
from typing import Any

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.info import TraceInfo, describe
from s2l.workloads.query import Query
from s2l.workloads.trace import Trace


def test_the_small_trace(trace_path: Path) -> None:
    trace = Trace.open(trace_path)
    assert describe(trace) == TraceInfo(
        name="small",
        collector="crawl 0.1.0",
        created_utc="2026-01-02T03:04:05Z",
        queries=4,
        finished_queries=2,
        arrivals={"search": 1, "append": 3, "replace": 2, "end": 2},
        failures={"timeout": 1},
        documents=3,
        bytes=sum(file.stat().st_size for file in trace_path.rglob("*.parquet")),
        gap_median_s=0.00004,  # of 4000, 0 and 40 µs
        gap_p95_s=None,
        duration_median_s=0.00304,  # of 6000 and 80 µs
        duration_p95_s=None,
        chunks_per_query=1.5,  # of 1 and 2; what never ended does not count
    )


def test_percentiles(tmp_path: Path, small: Any) -> None:
    with small.create(tmp_path / "t") as writer:
        for n in range(21):
            writer.add_query(Query(f"q{n}", "?", offset_us=n))
            writer.add_arrival(Arrival(f"q{n}", 0, ArrivalKind.SEARCH, 0, 0))
            writer.add_arrival(Arrival(f"q{n}", 1, ArrivalKind.APPEND, 0, n * 1_000))
            writer.add_arrival(Arrival(f"q{n}", 2, ArrivalKind.END, 0, n * 1_000_000))
        writer.finish()
    info = describe(Trace.open(tmp_path / "t"))
    assert (info.gap_median_s, info.gap_p95_s) == (0.01, 0.019)
    assert (info.duration_median_s, info.duration_p95_s) == (10.0, 19.0)
    assert info.chunks_per_query == 0.0


def test_an_empty_trace(tmp_path: Path, small: Any) -> None:
    with small.create(tmp_path / "t") as writer:
        writer.finish()
    info = describe(Trace.open(tmp_path / "t"))
    assert (info.queries, info.gap_median_s, info.chunks_per_query) == (0, None, None)
