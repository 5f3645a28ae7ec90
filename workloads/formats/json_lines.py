"""JSONL files, streamed line by line with their numbers."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from s2l.workloads.errors import disk_error
from s2l.workloads.formats.import_log import ImportLog

T = TypeVar("T")
_BOM = b"\xef\xbb\xbf"


def parsed_lines(
    path: Path, log: ImportLog, parse: Callable[[dict[str, Any], int], T]
) -> Iterator[T]:
    """What ``parse`` makes of each line's object and number (from 1); blank lines are no rows.

    A line that is no JSON object, or for which ``parse`` raises ValueError, is a bad row.

    Raises:
        ImportFailed: the first bad row, where the import is strict.
        DiskError: the file cannot be read.
    """
    for number, line in _numbered(path, log):
        try:
            found = msgspec.json.decode(line)
            if not isinstance(found, dict):
                raise ValueError("not a JSON object")
            result = parse(found, number)
        except (ValueError, msgspec.MsgspecError) as error:
            log.reject(path, number, error)
        else:
            yield result


def _numbered(path: Path, log: ImportLog) -> Iterator[tuple[int, bytes]]:
    log.files += 1
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                log.advance(len(line))
                text = line.removeprefix(_BOM) if number == 1 else line
                if text.strip():
                    log.rows += 1
                    yield number, text
    except OSError as error:
        raise disk_error(path, error) from None


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write one object a line; how many there were.

    Raises:
        DiskError: the file cannot be written.
    """
    count = 0
    try:
        with path.open("wb") as file:
            for row in rows:
                file.write(msgspec.json.encode(row) + b"\n")
                count += 1
    except OSError as error:
        raise disk_error(path, error) from None
    return count
