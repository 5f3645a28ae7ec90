"""BurstGPT: CSV of times, sessions, models and lengths."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from s2l.workloads.errors import disk_error
from s2l.workloads.formats.base import ExportOptions, ImportOptions, Record
from s2l.workloads.formats.csv_rows import csv_rows
from s2l.workloads.formats.fields import count_of, offset_us, units
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.ready_requests import ReadyRequest, known_output, ready_requests
from s2l.workloads.formats.request_files import files_of, row_id
from s2l.workloads.formats.requests import Request, records_of
from s2l.workloads.trace import Trace

_S: Final = 1_000_000
_REQUIRED: Final = ("Timestamp", "Request tokens", "Response tokens")
_META: Final = {
    "Session ID": "session_id",
    "Elapsed time": "elapsed_time",
    "Model": "model",
    "Log Type": "log_type",
}
_COLUMNS: Final = (
    "Timestamp",
    "Session ID",
    "Elapsed time",
    "Model",
    "Request tokens",
    "Response tokens",
    "Total tokens",
    "Log Type",
)


def read(source: Path, options: ImportOptions, log: ImportLog) -> Iterator[Record]:
    """One query a row; a response of no tokens is a request that failed there, and is kept."""
    files = files_of(source, "*.csv")
    log.expect(*files)
    for file in files:
        prefix = f"{file.stem}-" if len(files) > 1 else ""
        for line, row in csv_rows(file, log, _REQUIRED):
            try:
                request = _request(row, f"{prefix}{row_id(line)}")
            except ValueError as error:
                log.reject(file, line, error)
            else:
                yield from records_of(request)


def _request(row: dict[str, str], query_id: str) -> Request:
    tokens, output = count_of(row, "Request tokens"), count_of(row, "Response tokens")
    if row.get("Total tokens") and count_of(row, "Total tokens") != tokens + output:
        raise ValueError(f"Total tokens is {row['Total tokens']}; the sum is {tokens + output}")
    meta: dict[str, Any] = {"output_tokens": output}
    meta |= {name: row[column] for column, name in _META.items() if row.get(column)}
    return Request(query_id, offset_us(row, "Timestamp", _S), None, tokens, meta=meta)


def write(trace: Trace, out: Path, options: ExportOptions) -> int:
    """One row a query."""
    count = 0
    try:
        with out.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(_COLUMNS)
            for request in ready_requests(trace, options):
                table.writerow(_row(request))
                count += 1
    except OSError as error:
        raise disk_error(out, error) from None
    return count


def _row(request: ReadyRequest) -> list[object]:
    meta, tokens = request.query.meta, request.input_tokens
    output = known_output(request.query) or 0
    said = {column: meta.get(name, "") for column, name in _META.items()}
    row = said | {"Timestamp": units(request.offset_us, _S), "Request tokens": tokens}
    row |= {"Response tokens": output, "Total tokens": tokens + output}
    return [row[column] for column in _COLUMNS]
