"""Every promise of the format, broken once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from s2l.workloads.errors import TraceNotFound
from s2l.workloads.problem import Problem
from s2l.workloads.validation import validate

QUERIES, ARRIVALS = "queries.parquet", "arrivals/part-00000.parquet"
DOCUMENTS = "documents/part-00000.parquet"


def test_a_good_trace_has_no_problems(trace_path: Path) -> None:
    assert validate(trace_path) == []


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(TraceNotFound):
        validate(tmp_path / "none")


def test_an_unfinished_capture(tmp_path: Path, small: Any) -> None:
    path = tmp_path / "t"
    with small.create(path) as writer:
        small.fill(writer)
    [problem] = validate(path)
    assert "unfinished" in problem.text
    assert f"s2l dataset recover {path}" in problem.text


@pytest.mark.parametrize(
    ("file", "row", "column", "value", "text"),
    [
        (QUERIES, 1, "query_id", "q-a", "query_id 'q-a' occurs twice"),
        (QUERIES, 0, "offset_us", -5, "offset_us -5 is below 0"),
        (QUERIES, 0, "meta", "[]", "meta is not a JSON object"),
        (ARRIVALS, 1, "seq", 7, "seq is 7; 1 follows"),
        (ARRIVALS, 2, "arrival_us", 4_000, "arrival_us 4000 is before the one before (5000)"),
        (ARRIVALS, 1, "start_us", 5_001, "start_us 5001 is not in 0..arrival_us (5000)"),
        (ARRIVALS, 0, "kind", "later", "kind 'later' is not one of append, end, replace, search"),
        (ARRIVALS, 2, "kind", "end", "comes after its query's end"),
        (ARRIVALS, 1, "status", "timeout", "only an ok append or replace may have documents"),
        (ARRIVALS, 1, "doc_ids", ["nope"], "document 'nope' is not in documents/"),
        (ARRIVALS, 7, "query_id", "q-z", "query_id 'q-z' is not in queries.parquet"),
        (ARRIVALS, 7, "query_id", "q-a", "query 'q-a' is not in the order of queries.parquet"),
        (DOCUMENTS, 0, "text_sha256", "0", "text_sha256 is not that of the text"),
        (DOCUMENTS, 1, "n_chars", 9, "n_chars is 9; the text has 6"),
        (DOCUMENTS, 0, "text", None, "text is null, and privacy is full"),
        (DOCUMENTS, 0, "doc_id", "", "doc_id is empty"),
    ],
)
def test_a_bad_row_is_named(
    trace_path: Path,
    rewrite: Any,
    small: Any,
    file: str,
    row: int,
    column: str,
    value: object,
    text: str,
) -> None:
    rewrite(file, small.set_value(row, column, value))
    place = row if (row, value) != (2, "end") else 3
    assert Problem(file, place, text) in validate(trace_path)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"counts": {"queries": 5}}, "counts.queries is 5; the files have 4"),
        ({"counts": {"failures": {}}}, "counts.failures is {}; the files have {'timeout': 1}"),
        ({"counts": {"finished_queries": 3}}, "counts.finished_queries is 3; the files have 2"),
        ({"privacy": "urls"}, "has a text, and the privacy setting hides texts"),
        ({"files": []}, "lists no Parquet file of queries"),
    ],
)
def test_a_wrong_manifest(trace_path: Path, change: dict[str, Any], text: str) -> None:
    file = trace_path / "manifest.json"
    manifest = json.loads(file.read_text())
    change = {k: manifest[k] | v if isinstance(v, dict) else v for k, v in change.items()}
    file.write_text(json.dumps(manifest | change))
    assert any(text in problem.text for problem in validate(trace_path))


def damage(data: bytes) -> bytes:
    return data[:200] + bytes([data[200] ^ 1]) + data[201:]


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (damage, "sha256 is "),
        (lambda data: data[:-1], "the manifest says "),
        (lambda data: b"", "damaged: "),
    ],
)
def test_a_damaged_file(trace_path: Path, edit: Callable[[bytes], bytes], text: str) -> None:
    file = trace_path / ARRIVALS
    file.write_bytes(edit(file.read_bytes()))
    problems = validate(trace_path)
    assert any(one.file == ARRIVALS and text in one.text for one in problems)


def test_missing_and_unlisted_files(trace_path: Path) -> None:
    (trace_path / DOCUMENTS).rename(trace_path / "documents" / "part-00009.parquet")
    problems = validate(trace_path)
    assert Problem("documents/part-00009.parquet", None, "not listed in the manifest") in problems
    assert any(one.file == DOCUMENTS and "missing" in one.text for one in problems)


def test_a_missing_column_is_a_problem(trace_path: Path, rewrite: Any) -> None:
    rewrite(QUERIES, lambda table: table.drop_columns(["answers"]))
    assert any("has no column 'answers'" in problem.text for problem in validate(trace_path))


def test_many_problems_are_counted(trace_path: Path, rewrite: Any) -> None:
    rewrite(QUERIES, lambda table: pa.concat_tables([table] * 100))
    problems = [one for one in validate(trace_path) if one.file == QUERIES]
    assert len(problems) == 101
    assert problems[-1] == Problem(QUERIES, None, "296 more problems")


def test_problems_read_as_one_line() -> None:
    assert str(Problem("a.parquet", 3, "is odd")) == "a.parquet, row 3: is odd"
    assert str(Problem("a.parquet", None, "is odd")) == "a.parquet: is odd"
