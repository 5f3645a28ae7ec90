"""CSV files, streamed row by row with their lines."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from s2l.workloads.errors import disk_error
from s2l.workloads.formats.import_log import ImportLog

_FIELD_LIMIT = 1 << 30  # whole pages are in one field; the module's own limit is 128 KiB


def csv_rows(
    path: Path, log: ImportLog, required: Sequence[str]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row by column name, with the line it begins on; each one counts as a row.

    A row with too few or too many fields is a bad row. A file without the required columns, or
    that stops being text, is bad from there on, and named as a whole.

    Raises:
        ImportFailed: the first bad row or file, where the import is strict.
        DiskError: the file cannot be read.
    """
    log.files += 1
    csv.field_size_limit(_FIELD_LIMIT)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from _rows(path, csv.reader(_counted(file, log)), log, required)
    except UnicodeDecodeError:
        log.reject(path, 0, "stops being UTF-8 text; what follows is left out", rows=0)
    except OSError as error:
        raise disk_error(path, error) from None


def _counted(lines: Iterator[str], log: ImportLog) -> Iterator[str]:
    for line in lines:
        log.advance(len(line) if line.isascii() else len(line.encode()))
        yield line


def _rows(
    path: Path, reader: Iterator[list[str]], log: ImportLog, required: Sequence[str]
) -> Iterator[tuple[int, dict[str, str]]]:
    header = next(reader, None)
    if header is None or (missing := [name for name in required if name not in header]):
        text = "is empty" if header is None else f"has no column {', '.join(missing)}"
        log.reject(path, 0, text, rows=0)
        return
    line = reader.line_num + 1  # type: ignore[attr-defined]
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            log.rows += 1
            log.reject(path, line, error)
            fields = []
        if fields is None:
            return
        if fields:
            log.rows += 1
            if len(fields) == len(header):
                yield line, dict(zip(header, fields, strict=True))
            else:
                log.reject(path, line, f"has {len(fields)} fields; {len(header)} belong there")
        line = reader.line_num + 1  # type: ignore[attr-defined]
