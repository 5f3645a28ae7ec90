"""What is written is what is read."""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from s2l.workloads import sealing
from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.errors import NotATrace
from s2l.workloads.manifest import TraceCounts
from s2l.workloads.query import Query
from s2l.workloads.trace import Trace


def test_everything_comes_back(trace_path: Path, small: Any) -> None:
    trace = Trace.open(trace_path)
    assert list(trace.queries()) == small.QUERIES
    assert list(trace.arrivals()) == small.ARRIVALS
    assert list(trace.documents()) == small.DOCUMENTS


def test_arrivals_are_typed(trace_path: Path) -> None:
    first = next(Trace.open(trace_path).arrivals())
    assert type(first.kind) is ArrivalKind
    assert type(first.doc_ids) is tuple


def test_retrievals_group_every_query(trace_path: Path, small: Any) -> None:
    found = list(Trace.open(trace_path).retrievals())
    assert [one.query for one in found] == small.QUERIES
    assert [len(one.arrivals) for one in found] == [4, 3, 1, 0]
    assert [one.finished for one in found] == [True, True, False, False]


def test_only_wanted_documents(trace_path: Path, small: Any) -> None:
    trace = Trace.open(trace_path)
    assert list(trace.documents([small.C, small.A])) == [small.DOCUMENTS[0], small.DOCUMENTS[2]]
    assert list(trace.documents(set())) == []
    with pytest.raises(NotATrace, match="has no document 'nowhere'"):
        list(trace.documents(["nowhere", small.A]))


def test_texts_alone_of_all_of_most_or_of_few(trace_path: Path, small: Any) -> None:
    trace = Trace.open(trace_path)
    every = {document.doc_id: document.text for document in small.DOCUMENTS}
    assert trace.texts() == every
    assert trace.texts([small.C, small.A]) == {doc: every[doc] for doc in (small.C, small.A)}
    assert trace.texts([small.B]) == {small.B: every[small.B]}
    assert trace.texts([]) == {}
    for wanted in (["nowhere"], ["nowhere", *every]):
        with pytest.raises(NotATrace, match="has no document 'nowhere'"):
            trace.texts(wanted)


def test_manifest_says_what_is_there(trace_path: Path, small: Any) -> None:
    trace = Trace.open(trace_path)
    manifest = trace.manifest
    assert manifest.collector == small.COLLECTOR
    assert (manifest.name, manifest.licence, manifest.privacy) == ("small", "CC-BY-4.0", "full")
    assert (manifest.clock, manifest.created_utc) == ("monotonic", "2026-01-02T03:04:05Z")
    assert manifest.counts == TraceCounts(
        queries=4, finished_queries=2, arrivals=8, documents=3, failures={"timeout": 1}
    )
    assert manifest.counts.incomplete_queries == 2
    assert [(entry.path, entry.rows) for entry in manifest.files] == [
        ("queries.parquet", 4),
        ("arrivals/part-00000.parquet", 8),
        ("documents/part-00000.parquet", 3),
    ]
    for entry in manifest.files:
        data = (trace_path / entry.path).read_bytes()
        assert (entry.bytes, entry.sha256) == (len(data), sha256(data).hexdigest())
    assert trace.sha256 == sha256((trace_path / "manifest.json").read_bytes()).hexdigest()


def test_folder_holds_nothing_else(trace_path: Path) -> None:
    assert sorted(file.relative_to(trace_path).as_posix() for file in trace_path.rglob("*")) == [
        "README.md",
        "arrivals",
        "arrivals/part-00000.parquet",
        "documents",
        "documents/part-00000.parquet",
        "manifest.json",
        "queries.parquet",
    ]


def test_the_same_capture_gives_the_same_bytes(
    tmp_path: Path, trace_path: Path, small: Any
) -> None:
    with small.create(tmp_path / "again") as writer:
        small.fill(writer)
        writer.finish()
    assert Trace.open(tmp_path / "again").sha256 == Trace.open(trace_path).sha256


def test_files_are_zstd_with_dictionaries(trace_path: Path) -> None:
    metadata = pq.read_metadata(trace_path / "arrivals/part-00000.parquet").row_group(0)
    columns = [metadata.column(n) for n in range(metadata.num_columns)]
    assert {column.compression for column in columns} == {"ZSTD"}
    encodings = {column.path_in_schema: column.encodings for column in columns}
    for name in ("query_id", "kind", "doc_ids.list.element"):
        assert "RLE_DICTIONARY" in encodings[name]


def test_queries_are_ordered_by_their_offset(tmp_path: Path, small: Any) -> None:
    with small.create(tmp_path / "t") as writer:
        for query_id, offset_us in (("late", 90), ("early", 5), ("same", 5)):
            writer.add_query(Query(query_id, "?", offset_us=offset_us))
            writer.add_arrival(Arrival(query_id, 0, ArrivalKind.END, 0, 1))
        writer.finish()
    trace = Trace.open(tmp_path / "t")
    assert [query.query_id for query in trace.queries()] == ["early", "same", "late"]
    assert [arrival.query_id for arrival in trace.arrivals()] == ["early", "same", "late"]


def test_many_flushes_and_parts(
    tmp_path: Path, small: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "_ARRIVAL_LAYOUT", sealing.Layout(16 << 20, 7, 2))
    monkeypatch.setattr(sealing, "_DOCUMENT_LAYOUT", sealing.Layout(1, 7, 2))
    documents = [Document.of_text(url=str(n), title="", text=str(n)) for n in range(5)]
    with small.create(tmp_path / "t") as writer:
        for n in range(20):
            writer.add_query(Query(f"q{n}", "?", offset_us=n))
        for document in documents:
            writer.add_document(document)
        for seq in range(3):
            for n in reversed(range(20)):
                kind = ArrivalKind.END if seq == 2 else ArrivalKind.APPEND
                writer.add_arrival(Arrival(f"q{n}", seq, kind, seq, seq + n))
                writer.flush()
        writer.finish()
    trace = Trace.open(tmp_path / "t")
    keys = [(arrival.query_id, arrival.seq) for arrival in trace.arrivals()]
    assert keys == [(f"q{n}", seq) for n in range(20) for seq in range(3)]
    assert sum(entry.path.startswith("arrivals/") for entry in trace.manifest.files) == 5
    assert list(trace.documents()) == documents
    assert list(trace.documents([documents[4].doc_id])) == [documents[4]]


def test_an_empty_trace(tmp_path: Path, small: Any) -> None:
    with small.create(tmp_path / "t") as writer:
        writer.finish()
    trace = Trace.open(tmp_path / "t")
    assert [*trace.queries(), *trace.arrivals(), *trace.retrievals(), *trace.documents()] == []


def test_a_reader_ignores_unknown_columns_and_other_widths(
    trace_path: Path, rewrite: Any, small: Any
) -> None:
    def widen(table: pa.Table) -> pa.Table:
        wide = table.set_column(0, "query_id", table.column("query_id").dictionary_encode())
        wide = wide.set_column(1, "seq", table.column("seq").cast(pa.int64()))
        wide = wide.set_column(7, "detail", table.column("detail").cast(pa.large_string()))
        return wide.append_column("score", pa.array([0.5] * len(table)))

    rewrite("arrivals/part-00000.parquet", widen)
    assert list(Trace.open(trace_path).arrivals()) == small.ARRIVALS


def test_retrievals_name_arrivals_out_of_order(trace_path: Path, rewrite: Any) -> None:
    rewrite("arrivals/part-00000.parquet", lambda table: table.take([4, 5, 6, 0, 1, 2, 3, 7]))
    with pytest.raises(NotATrace, match="'q-a' are not in the order"):
        list(Trace.open(trace_path).retrievals())


@pytest.mark.parametrize("privacy", ["urls", "hashed"])
def test_hidden_texts(tmp_path: Path, small: Any, privacy: str) -> None:
    with small.create(tmp_path / "t", privacy=privacy) as writer:
        small.fill(writer)
        writer.finish()
    trace = Trace.open(tmp_path / "t")
    shown = list(trace.documents())
    whole: list[Document] = small.DOCUMENTS
    assert [one.text for one in shown] == [None] * 3
    assert [one.text_sha256 for one in shown] == [one.text_sha256 for one in whole]
    if privacy == "urls":
        assert shown == [replace(one, text=None) for one in whole]
    else:
        url = f"sha256:{sha256(b'http://site/0').hexdigest()}"
        assert (shown[0].url, shown[0].title) == (url, "")
        assert {arrival.detail for arrival in trace.arrivals()} == {""}


def test_manifest_is_readable_json(trace_path: Path) -> None:
    data = json.loads((trace_path / "manifest.json").read_text())
    assert data["format"] == "s2l-trace/1"
    assert data["collector"]["options"] == {"pages": 3, "site": "demo"}
