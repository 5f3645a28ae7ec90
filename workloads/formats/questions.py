"""Question files: JSONL or CSV with a question and its answers; SimpleQA is one of them."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.errors import disk_error
from s2l.workloads.formats.base import ExportOptions, ImportOptions, Record
from s2l.workloads.formats.csv_rows import csv_rows
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.json_lines import parsed_lines, write_lines
from s2l.workloads.formats.request_files import RowIds
from s2l.workloads.query import Query
from s2l.workloads.questions import question_of
from s2l.workloads.trace import Trace

LOSES: Final = "everything but the questions, their answers and their meta"
_SIMPLEQA_QUESTION: Final = "problem"


def read(source: Path, options: ImportOptions, log: ImportLog) -> Iterator[Record]:
    """One query a row, whose retrieval brought nothing."""
    log.expect(source)
    ids = RowIds()
    found = _from_csv if source.suffix.lower() == ".csv" else _from_json_lines
    for query in found(source, log, ids):
        yield query
        yield Arrival(query.query_id, 0, ArrivalKind.END, 0, 0)


def _from_json_lines(source: Path, log: ImportLog, ids: RowIds) -> Iterator[Query]:
    return parsed_lines(source, log, lambda row, number: _query(row, number, ids))


def _from_csv(source: Path, log: ImportLog, ids: RowIds) -> Iterator[Query]:
    for line, fields in csv_rows(source, log, ()):
        row: dict[str, Any] = {key: value for key, value in fields.items() if key and value}
        try:
            yield _query(_with_lists(row), line, ids)
        except ValueError as error:
            log.reject(source, line, error)


def _with_lists(row: dict[str, Any]) -> dict[str, Any]:
    """``answers`` in a cell may be a JSON list; SimpleQA calls the question a problem."""
    if _SIMPLEQA_QUESTION in row:
        row.setdefault("query", row.pop(_SIMPLEQA_QUESTION))
    answers = row.get("answers", "")
    if answers.startswith("["):
        try:
            row["answers"] = msgspec.json.decode(answers)
        except msgspec.MsgspecError as error:
            raise ValueError(f"answers: {error}") from None
    return row


def _query(row: dict[str, Any], number: int, ids: RowIds) -> Query:
    query = question_of(row, number)
    ids.take(query.query_id)
    return query


def write(trace: Trace, out: Path, options: ExportOptions) -> int:
    """JSONL, or CSV where the file is named so."""
    if out.suffix.lower() == ".csv":
        return _write_csv(trace, out)
    return write_lines(out, map(_row, trace.queries()))


def _row(query: Query) -> dict[str, Any]:
    return {
        "query_id": query.query_id,
        "query": query.text,
        "answers": query.answers,
        **{key: value for key, value in query.meta.items() if key != "query_id"},
    }


def _write_csv(trace: Trace, out: Path) -> int:
    """Three columns; ``answers`` is a JSON list."""
    count = 0
    try:
        with out.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(("query_id", "query", "answers"))
            for query in trace.queries():
                answers = msgspec.json.encode(query.answers).decode()
                table.writerow((query.query_id, query.text, answers))
                count += 1
    except OSError as error:
        raise disk_error(out, error) from None
    return count
