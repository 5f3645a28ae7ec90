"""JSONL files of one request a row: what their formats share."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from s2l.workloads.formats.base import ExportOptions, Record
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.json_lines import parsed_lines, write_lines
from s2l.workloads.formats.ready_requests import ReadyRequest, ready_requests
from s2l.workloads.formats.requests import Request, records_of
from s2l.workloads.trace import Trace

ParseRow = Callable[[dict[str, Any], str], Request]
"""A row and its id to the request. Raises ValueError for a bad row."""

FormatRow = Callable[[ReadyRequest], Mapping[str, Any]]
"""A request to its row."""


def read_requests(
    source: Path, log: ImportLog, parse: ParseRow, pattern: str = "*.jsonl"
) -> Iterator[Record]:
    """The records of a file, or of all files of a folder that match, by name.

    A row's id is its ``query_id``, where it has one; else it follows from its line.
    """
    files = files_of(source, pattern)
    log.expect(*files)
    ids = RowIds()
    for file in files:
        prefix = f"{file.stem}-" if len(files) > 1 else ""

        def with_id(row: dict[str, Any], number: int, prefix: str = prefix) -> Request:
            own = row.pop("query_id", None)
            request = parse(row, f"{prefix}{row_id(number)}" if own is None else str(own))
            ids.take(request.query_id)
            return request

        for request in parsed_lines(file, log, with_id):
            yield from records_of(request)


def write_requests(
    trace: Trace,
    out: Path,
    options: ExportOptions,
    row: FormatRow,
) -> int:
    """One row a query; ``query_id`` is in it where it does not follow from the line."""
    return write_lines(out, _numbered(trace, options, row))


def _numbered(trace: Trace, options: ExportOptions, row: FormatRow) -> Iterator[Mapping[str, Any]]:
    for number, request in enumerate(ready_requests(trace, options), start=1):
        query_id = request.query.query_id
        own = {} if query_id == row_id(number) else {"query_id": query_id}
        yield {**row(request), **own}


class RowIds:
    """Refuses an id that was there before."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, query_id: str) -> None:
        """Take note of an id. Raises ValueError where it is empty or known."""
        if not query_id or query_id in self._taken:
            raise ValueError(f"query_id {query_id!r} is empty or occurs twice")
        self._taken.add(query_id)


def row_id(number: int) -> str:
    """The id of a row without one, by its line; sorts as the lines do."""
    return f"r{number:07}"


def files_of(source: Path, pattern: str) -> list[Path]:
    """The file itself, or those in the folder that match, by name."""
    return sorted(source.glob(pattern)) if source.is_dir() else [source]
