"""What is not a readable trace is named in one line."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from s2l.workloads.document import Document
from s2l.workloads.errors import NotATrace, TraceError, TraceNotFound, UnfinishedTrace
from s2l.workloads.errors import UnsupportedFormat as Unsupported
from s2l.workloads.retrieval import Retrieval
from s2l.workloads.trace import Trace

ARRIVALS = "arrivals/part-00000.parquet"


def edit_manifest(path: Path, **changes: Any) -> None:
    file = path / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def read(path: Path) -> tuple[list[Retrieval], list[Document]]:
    trace = Trace.open(path)
    return list(trace.retrievals()), list(trace.documents())


def fails(path: Path, kind: type[TraceError], text: str) -> None:
    with pytest.raises(TraceError, match=re.escape(text)) as caught:
        read(path)
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_nothing_there(tmp_path: Path) -> None:
    fails(tmp_path / "none", TraceNotFound, "no such trace folder")


def test_another_folder_or_file(tmp_path: Path) -> None:
    fails(tmp_path, NotATrace, "not a trace (no manifest.json)")
    (tmp_path / "file").write_text("x")
    fails(tmp_path / "file", NotATrace, "not a trace")


def test_unfinished(tmp_path: Path, small: Any) -> None:
    with small.create(tmp_path / "t") as writer:
        small.fill(writer)
    fails(tmp_path / "t", UnfinishedTrace, f"s2l dataset recover {tmp_path / 't'}")


@pytest.mark.parametrize("text", ["", "{", "[1]", "\xff", '{"format": "s2l-run/1"}', '{"a": 1}'])
def test_manifest_is_something_else(trace_path: Path, text: str) -> None:
    (trace_path / "manifest.json").write_bytes(text.encode("latin-1"))
    fails(trace_path, NotATrace, "manifest.json: ")


def test_manifest_lacks_a_field(trace_path: Path) -> None:
    (trace_path / "manifest.json").write_text('{"format": "s2l-trace/1", "name": "x"}')
    fails(trace_path, NotATrace, "missing required field `created_utc`")


def test_another_major_version(trace_path: Path) -> None:
    edit_manifest(trace_path, format="s2l-trace/2")
    fails(trace_path, Unsupported, "trace format s2l-trace/2; this version reads s2l-trace/1")


def test_a_later_minor_version_and_unknown_fields_are_read(trace_path: Path) -> None:
    edit_manifest(trace_path, format="s2l-trace/1.3", mood="good")
    assert Trace.open(trace_path).manifest.format == "s2l-trace/1.3"


@pytest.mark.parametrize("name", ["/etc/passwd", "../x.parquet", "arrivals/../../x", "", "a\\b"])
def test_paths_outside(trace_path: Path, name: str) -> None:
    edit_manifest(trace_path, files=[{"path": name, "rows": 0, "bytes": 0, "sha256": ""}])
    fails(trace_path, NotATrace, f"lists {name!r}, which is not inside the folder")


def test_a_link_outside(trace_path: Path) -> None:
    shutil.move(trace_path / ARRIVALS, trace_path.parent / "elsewhere.parquet")
    (trace_path / ARRIVALS).symlink_to(trace_path.parent / "elsewhere.parquet")
    fails(trace_path, NotATrace, "not inside the folder")


def test_a_missing_file(trace_path: Path) -> None:
    (trace_path / ARRIVALS).unlink()
    fails(trace_path, NotATrace, f"{ARRIVALS}: missing")


def test_no_table_listed(trace_path: Path) -> None:
    edit_manifest(trace_path, files=[])
    fails(trace_path, NotATrace, "lists no Parquet file of queries")


def test_another_size(trace_path: Path) -> None:
    file = trace_path / ARRIVALS
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[:-7])
    fails(trace_path, NotATrace, f"has {size - 7} bytes; the manifest says {size}")


@pytest.mark.parametrize("name", ["queries.parquet", ARRIVALS, "documents/part-00000.parquet"])
def test_every_damaged_byte_is_named_or_harmless(trace_path: Path, name: str) -> None:
    file = trace_path / name
    whole = file.read_bytes()
    expected = read(trace_path)
    errors = []
    for at in range(0, len(whole), 37):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            assert read(trace_path) == expected
        except NotATrace as error:
            errors.append(str(error))
    assert len(errors) > 10
    assert all(name in error and "\n" not in error for error in errors)


def test_truncated_with_a_matching_manifest(trace_path: Path) -> None:
    file = trace_path / ARRIVALS
    file.write_bytes(file.read_bytes()[:500])
    manifest = json.loads((trace_path / "manifest.json").read_text())
    manifest["files"][1]["bytes"] = 500
    edit_manifest(trace_path, files=manifest["files"])
    fails(trace_path, NotATrace, f"{ARRIVALS}: damaged: ")


def test_another_number_of_rows(trace_path: Path) -> None:
    manifest = json.loads((trace_path / "manifest.json").read_text())
    manifest["files"][1]["rows"] = 9
    edit_manifest(trace_path, files=manifest["files"])
    fails(trace_path, NotATrace, f"{ARRIVALS}: has 8 rows; the manifest says 9")


def test_a_missing_column_is_named(trace_path: Path, rewrite: Any) -> None:
    rewrite(ARRIVALS, lambda table: table.drop_columns(["status"]))
    fails(trace_path, NotATrace, "has no column 'status' (string)")


def test_a_column_of_another_type_is_named(trace_path: Path, rewrite: Any) -> None:
    rewrite(ARRIVALS, lambda t: t.set_column(1, "seq", t.column("seq").cast(pa.float64())))
    fails(trace_path, NotATrace, "column 'seq' is double; it must be int32")


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [("kind", "later", "'later' is not a valid ArrivalKind"), ("meta", "[1]", "Expected `object`")],
)
def test_a_value_that_no_arrival_has(
    trace_path: Path, rewrite: Any, small: Any, column: str, value: str, text: str
) -> None:
    rewrite(ARRIVALS, small.set_value(2, column, value))
    fails(trace_path, NotATrace, text)


def test_nulls_are_named(trace_path: Path, rewrite: Any) -> None:
    def empty(table: pa.Table) -> pa.Table:
        return table.set_column(7, "detail", pa.nulls(len(table), pa.string()))

    rewrite(ARRIVALS, empty)
    fails(trace_path, NotATrace, "column 'detail' has nulls")
