"""Stream2LLM crawl traces: a folder of ``query_<int>.csv``, a query each."""

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from s2l.workloads.arrival import OK, Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.errors import ExportFailed, disk_error
from s2l.workloads.formats.base import PLAIN, ExportOptions, ImportOptions, Record
from s2l.workloads.formats.csv_rows import csv_rows
from s2l.workloads.formats.delays import Offsets, write_delays
from s2l.workloads.formats.fields import microseconds
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.ready_requests import text_of_document
from s2l.workloads.query import Query
from s2l.workloads.retrieval import Retrieval
from s2l.workloads.trace import Trace
from s2l.workloads.with_documents import retrievals_with_documents

DELAYS: Final = "arrival_delays.txt"
EMPTY: Final = "empty"
"""The status of a page that brought no text."""

LOSES: Final = (
    "ids unless all are numbers that rise with time, answers, urls and titles, why a page failed "
    "(all become empty), how long a retrieval went on after its last arrival, several documents in "
    "one arrival, that there was no search, meta"
)
_SEARCH: Final = "tavily_search"
_PAGE: Final = "page_scrape"
_NAME: Final = re.compile(r"query_(\d+)\.csv")
_REQUIRED: Final = ("type", "startTime", "endTime", "query")
_COLUMNS: Final = (*_REQUIRED, "content")
_NAN: Final = frozenset({"", "nan", "NaN"})
_S: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    is_search: bool
    start_us: int
    end_us: int
    query: str
    content: str


def read(source: Path, options: ImportOptions, log: ImportLog) -> Iterator[Record]:
    """One query a file, in the order of their numbers."""
    files = query_files(source)
    log.expect(*(file for _, file in files))
    offsets = Offsets(options.delays)
    for number, file in files:
        before, bad_files = log.good, log.bad_files
        offset_us = offsets.take()  # a file that is left out has a delay of its own, too
        rows = sorted(_rows(file, log), key=lambda row: row.end_us)
        text = next((row.query for row in rows if row.is_search and row.query not in _NAN), None)
        if text is None:
            if rows or log.bad_files == bad_files:
                log.reject(file, 0, "has no search row with a query", rows=log.good - before)
            continue
        yield from _records(Query(str(number), text, (), offset_us), rows)


def query_files(source: Path) -> list[tuple[int, Path]]:
    """The files of a folder with their numbers, in the order of these; or the one that is named."""
    if not source.is_dir():
        found = _NAME.fullmatch(source.name)
        return [(int(found[1]) if found else 0, source)]
    names = ((_NAME.fullmatch(file.name), file) for file in source.iterdir())
    return sorted((int(name[1]), file) for name, file in names if name)


def _rows(file: Path, log: ImportLog) -> Iterator[_Row]:
    for line, row in csv_rows(file, log, _REQUIRED):
        try:
            yield _row(line, row)
        except ValueError as error:
            log.reject(file, line, error)


def _row(line: int, row: Mapping[str, str]) -> _Row:
    if row["type"] not in (_SEARCH, _PAGE):
        raise ValueError(f"type is {row['type']!r}; it must be {_SEARCH} or {_PAGE}")
    start_us, end_us = microseconds(row, "startTime", _S), microseconds(row, "endTime", _S)
    if end_us < start_us:
        raise ValueError(f"endTime {row['endTime']} is before startTime {row['startTime']}")
    content = row.get("content", "")
    is_search = row["type"] == _SEARCH
    return _Row(line, is_search, start_us, end_us, row["query"], content)


def _records(query: Query, rows: list[_Row]) -> Iterator[Record]:
    """The query, and its rows on a clock that starts at the smallest start."""
    yield query
    zero_us = min(row.start_us for row in rows)
    for seq, row in enumerate(rows):
        start_us, end_us = row.start_us - zero_us, row.end_us - zero_us
        if row.is_search:
            yield Arrival(query.query_id, seq, ArrivalKind.SEARCH, start_us, end_us)
        elif row.content in _NAN:
            yield Arrival(query.query_id, seq, ArrivalKind.APPEND, start_us, end_us, status=EMPTY)
        else:
            document = Document.of_text(url="", title="", text=row.content, mime=PLAIN)
            yield document
            ids = (document.doc_id,)
            yield Arrival(query.query_id, seq, ArrivalKind.APPEND, start_us, end_us, ids)
    last_us = rows[-1].end_us - zero_us
    yield Arrival(query.query_id, len(rows), ArrivalKind.END, last_us, last_us)


def write(trace: Trace, out: Path, options: ExportOptions) -> int:
    """A folder with one file a query, and the delays between them."""
    offsets: list[tuple[int, int]] = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        numbers = _numbers(trace)
        for retrieval, documents in retrievals_with_documents(trace):
            if not retrieval.finished:
                continue
            number = numbers[retrieval.query.query_id]
            _write_query(out / f"query_{number}.csv", retrieval, documents)
            offsets.append((number, retrieval.query.offset_us))
            options.tell(len(offsets))
    except OSError as error:
        raise disk_error(out, error) from None
    ordered = [offset_us for _, offset_us in sorted(offsets)]
    if any(ordered):
        write_delays(out / DELAYS, ordered)
    return len(offsets)


def _numbers(trace: Trace) -> dict[str, int]:
    """The number in each query's file name, by which delays are given: their own, where these rise
    with their times."""
    queries = [(query.offset_us, query.query_id) for query in trace.queries()]
    if all(_is_number(query_id) for _, query_id in queries):
        own = {query_id: int(query_id) for _, query_id in queries}
        by_number = sorted(queries, key=lambda query: own[query[1]])
        if by_number == sorted(by_number, key=lambda query: query[0]):
            return own
    in_time = sorted(queries, key=lambda query: query[0])
    return {query_id: number for number, (_, query_id) in enumerate(in_time)}


def _is_number(query_id: str) -> bool:
    """Whether the number in a file's name gives the id back."""
    return query_id.isascii() and query_id.isdecimal() and str(int(query_id)) == query_id


def _write_query(file: Path, retrieval: Retrieval, documents: Mapping[str, Document]) -> None:
    if retrieval.query.text in _NAN:
        raise ExportFailed(f"query {retrieval.query.query_id!r} has no text; a search needs one")
    rows = [row for arrival in retrieval.arrivals for row in _arrival_rows(arrival, documents)]
    if not any(row["type"] == _SEARCH for row in rows):
        rows.insert(0, {"type": _SEARCH, "startTime": 0.0, "endTime": 0.0})
    with file.open("x", encoding="utf-8", newline="") as opened:
        table = csv.DictWriter(opened, _COLUMNS, restval="", lineterminator="\n")
        table.writeheader()
        for row in rows:
            query = retrieval.query.text if row["type"] == _SEARCH else ""
            table.writerow({**row, "query": query})


def _arrival_rows(
    arrival: Arrival, documents: Mapping[str, Document]
) -> Iterator[dict[str, object]]:
    times: dict[str, object] = {
        "startTime": arrival.start_us / _S,
        "endTime": arrival.arrival_us / _S,
    }
    if arrival.kind is ArrivalKind.REPLACE:
        raise ExportFailed(
            f"query {arrival.query_id!r} has its context replaced; a crawl's pages only come after "
            "one another; use stream2llm-anns"
        )
    if arrival.kind is ArrivalKind.SEARCH:
        yield {"type": _SEARCH, **times}
    elif arrival.kind is ArrivalKind.APPEND and not (arrival.status == OK and arrival.doc_ids):
        yield {"type": _PAGE, **times}
    elif arrival.kind is ArrivalKind.APPEND:
        for doc in arrival.doc_ids:
            yield {"type": _PAGE, **times, "content": text_of_document(documents[doc])}
