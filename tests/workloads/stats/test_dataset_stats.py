"""Figures of workloads, known by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.errors import TraceError
from s2l.workloads.query import Query
from s2l.workloads.stats.burstiness import burstiness
from s2l.workloads.stats.dataset_stats import characterise, stats_json
from s2l.workloads.stats.distribution import distribution
from s2l.workloads.stats.overlap import Overlap
from s2l.workloads.stats.stats_table import COLUMNS, LABELS, distribution_rows, figure, other_rows
from s2l.workloads.token_counter import WordCounter
from s2l.workloads.trace import Trace


def test_the_small_trace(trace_path: Path) -> None:
    stats = characterise(Trace.open(trace_path), WordCounter())
    assert (stats.queries, stats.finished_queries, stats.documents) == (4, 2, 3)
    assert (stats.failed_arrivals, stats.tokens_of) == (1, "words")
    found = stats.distributions
    assert (found["arrivals_per_query"].min, found["arrivals_per_query"].max) == (2, 3)
    assert (found["chunks_per_query"].min, found["chunks_per_query"].max) == (1, 2)
    assert found["gap_s"].n == 3
    assert found["gap_s"].mean == pytest.approx((0.004 + 0 + 0.00004) / 3)
    assert found["first_chunk_s"].mean == pytest.approx((0.005 + 0.00004) / 2)
    assert found["duration_s"].max == 0.006
    # Texts are of 1, 2 and 300 words; q-a has the first two, q-b ends with all three.
    assert (found["context_tokens"].min, found["context_tokens"].max) == (3, 303)
    assert found["document_tokens"].mean == 101
    assert found["question_tokens"].max == 3


def test_reuse_between_updates(trace_path: Path) -> None:
    reuse = characterise(Trace.open(trace_path), WordCounter()).reuse
    # q-b: (1 + 300 words), then (300 + 2 + 1): 301 of 303 were there, none at the same place.
    assert reuse.update_documents == pytest.approx(301 / 303)
    assert reuse.update_prefix == 0
    assert reuse.wasted_prefill == pytest.approx(1 - (3 + 303) / (3 + 301 + 303))
    assert reuse.duplicate_documents == 0
    # The documents are used by two queries, by three and by one.
    assert reuse.queries_per_document == pytest.approx(2)
    assert reuse.shared_documents == pytest.approx(2 / 3)


def test_a_prefix_is_kept(tmp_path: Path, small: Any) -> None:
    pages = [Document.of_text(url=str(n), title="", text="w " * n) for n in (10, 20, 30)]
    a, b, c = (page.doc_id for page in pages)
    with small.create(tmp_path / "t") as writer:
        for page in pages:
            writer.add_document(page)
        writer.add_query(Query("q", "?"))
        writer.add_arrival(Arrival("q", 0, ArrivalKind.REPLACE, 0, 1, (a, b)))
        writer.add_arrival(Arrival("q", 1, ArrivalKind.REPLACE, 1, 2, (a, c)))
        writer.add_arrival(Arrival("q", 2, ArrivalKind.END, 2, 2))
        writer.finish()
    reuse = characterise(Trace.open(tmp_path / "t"), WordCounter()).reuse
    assert (reuse.update_documents, reuse.update_prefix) == (0.25, 0.25)
    assert reuse.wasted_prefill == pytest.approx(20 / 60)


def test_an_empty_trace(tmp_path: Path, small: Any) -> None:
    with small.create(tmp_path / "t") as writer:
        writer.finish()
    stats = characterise(Trace.open(tmp_path / "t"), WordCounter())
    assert (stats.queries, stats.reuse.wasted_prefill) == (0, None)
    assert {one.mean for one in stats.distributions.values()} == {None}
    assert {cell for row in other_rows([stats])[5:] for cell in row.cells} == {"n/a"}


def test_hidden_texts(tmp_path: Path, small: Any) -> None:
    with small.create(tmp_path / "t", privacy="urls") as writer:
        small.fill(writer)
        writer.finish()
    with pytest.raises(TraceError, match=r"texts are hidden \(privacy urls\)"):
        characterise(Trace.open(tmp_path / "t"), WordCounter())


def test_overlap() -> None:
    overlap = Overlap()
    menu = "Home, products, company, contact, imprint, privacy"
    for n, text in enumerate([f"{menu}\n{'a' * 50}", f"{menu}\n{'b' * 50}", "same", "same"]):
        overlap.add_document(Document.of_text(url=str(n), title="", text=text))
    assert overlap.duplicate_share == 0.25
    assert overlap.repeated_line_share == pytest.approx(50 / 200)
    assert overlap.queries_per_document is None


def test_lines_of_a_large_dataset_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("s2l.workloads.stats.overlap.SKETCH_LINES", 200)
    overlap = Overlap()
    for n in range(4_000):
        line = f"this line is in two of the documents, number {n // 2 if n < 2_000 else n}"
        overlap.add_document(Document.of_text(url=str(n), title="", text=line))
    assert overlap.repeated_line_share == pytest.approx(0.25, abs=0.06)


def test_burstiness() -> None:
    even = burstiness(range(0, 600_000_000, 500_000))
    assert (even.mean_qps, even.gap_cv, even.burst_index) == (2.0, 0.0, -1.0)
    assert even.dispersion == {"1s": 0.0, "10s": 0.0, "60s": None}
    assert even.peak_qps == 2
    random = np.random.Generator(np.random.PCG64(0)).random(20_000)
    poisson = burstiness(np.cumsum(-np.log1p(-random) * 1e6).astype(np.int64).tolist())
    assert poisson.gap_cv == pytest.approx(1, abs=0.03)
    assert poisson.dispersion["10s"] == pytest.approx(1, abs=0.1)
    assert burstiness([5, 5, 5]).mean_qps is None


def test_distribution() -> None:
    found = distribution(range(1, 101), "s", 10)
    assert (found.n, found.mean, found.min, found.max) == (100, 5.05, 0.1, 10.0)
    assert found.percentiles["p50"] == pytest.approx(5.05)
    assert found.percentiles["p99"] == pytest.approx(9.901)
    assert found.curve[0] == (0.1, 0.01)
    assert found.curve[-1] == (10.0, 1.0)
    assert sum(count for _, _, count in found.bins) == 100
    assert distribution(range(50), "s").percentiles["p99"] is None
    assert distribution([3, 3], "s").bins == ((3.0, 3.0, 2),)


def test_tables_and_json(trace_path: Path) -> None:
    stats = characterise(Trace.open(trace_path), WordCounter())
    rows = distribution_rows([stats, stats], "context_tokens")
    assert [row.label for row in rows] == ["small", "small"]
    assert dict(zip(COLUMNS, rows[0].cells, strict=True))["max"] == "303"
    assert all(len(row.cells) == 2 for row in other_rows([stats, stats]))
    assert set(LABELS) == set(stats.distributions)
    (read,) = json.loads(stats_json([stats]))["datasets"]
    assert read["distributions"]["duration_s"]["max"] == 0.006
    assert [figure(value) for value in (None, 0, 0.0367, 9.874, 123.45, 13006.2)] == [
        "n/a",
        "0",
        "0.0367",
        "9.874",
        "123",
        "13,006",
    ]
