"""Azure LLM inference trace 2023: CSV of times and lengths, nothing else."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from s2l.workloads.errors import disk_error
from s2l.workloads.formats.base import ExportOptions, ImportOptions, Record
from s2l.workloads.formats.csv_rows import csv_rows
from s2l.workloads.formats.fields import count_of
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.ready_requests import known_output, ready_requests
from s2l.workloads.formats.request_files import files_of, row_id
from s2l.workloads.formats.requests import Request, records_of
from s2l.workloads.trace import Trace

_COLUMNS: Final = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_FIRST: Final = "first_timestamp"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def read(source: Path, options: ImportOptions, log: ImportLog) -> Iterator[Record]:
    """One query a row; times count from the earliest of all files."""
    files = files_of(source, "*.csv")
    log.expect(*files)
    first_us = min((at for file in files for at in _times_us(file)), default=0)
    log.facts[_FIRST] = timestamp(first_us)
    for file in files:
        prefix = f"{file.stem}-" if len(files) > 1 else ""
        for line, row in csv_rows(file, log, _COLUMNS):
            try:
                request = _request(row, f"{prefix}{row_id(line)}", first_us)
            except ValueError as error:
                log.reject(file, line, error)
            else:
                yield from records_of(request)


def _request(row: dict[str, str], query_id: str, first_us: int) -> Request:
    at_us = timestamp_us(row["TIMESTAMP"]) - first_us
    output = count_of(row, "GeneratedTokens")
    tokens = count_of(row, "ContextTokens")
    return Request(query_id, at_us, None, tokens, meta={"output_tokens": output})


def _times_us(file: Path) -> Iterator[int]:
    """The times that can be read, for the first pass; the second one names the others."""
    for _, row in csv_rows(file, ImportLog(), _COLUMNS):
        try:
            yield timestamp_us(row["TIMESTAMP"])
        except ValueError:
            continue


def timestamp_us(text: str) -> int:
    """``2023-11-16 18:15:46.6805900`` as µs since 1970; the seventh digit is rounded away.

    Raises:
        ValueError: it is no such time.
    """
    whole, _, fraction = text.strip().partition(".")
    if fraction and not (fraction.isascii() and fraction.isdigit()):
        raise ValueError(f"TIMESTAMP is {text!r}; it must be as 2023-11-16 18:15:46.6805900")
    try:
        moment = datetime.strptime(whole, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        hint = "it must be as 2023-11-16 18:15:46.6805900"
        raise ValueError(f"TIMESTAMP is {text!r}; {hint}") from None
    rest_us = round(int(fraction) * 10 ** (6 - len(fraction))) if fraction else 0
    return (moment - _EPOCH) // timedelta(microseconds=1) + rest_us


def timestamp(time_us: int) -> str:
    """µs since 1970 as the trace writes them."""
    moment = _EPOCH + timedelta(microseconds=time_us)
    return f"{moment:%Y-%m-%d %H:%M:%S.%f}0"


def write(trace: Trace, out: Path, options: ExportOptions) -> int:
    """One row a query, CRLF as published; the day is the imported trace's, or its creation's."""
    start_us = _start_us(trace)
    count = 0
    try:
        with out.open("w", encoding="utf-8", newline="\r\n") as file:
            file.write(",".join(_COLUMNS) + "\n")
            for request in ready_requests(trace, options):
                at = timestamp(start_us + request.offset_us)
                output = known_output(request.query) or 0
                file.write(f"{at},{request.input_tokens},{output}\n")
                count += 1
    except OSError as error:
        raise disk_error(out, error) from None
    return count


def _start_us(trace: Trace) -> int:
    first = trace.manifest.collector.options.get(_FIRST)
    if isinstance(first, str):
        return timestamp_us(first)
    created = trace.manifest.created_utc
    try:
        moment = datetime.fromisoformat(created)
    except ValueError:
        return 0
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)
