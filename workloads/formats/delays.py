"""Saved arrival delays: a text file, ``#`` headers, seconds before each query."""

import math
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path

from s2l.workloads.errors import ImportFailed, disk_error

_LONGEST_S = 1e9


def read_delays(path: Path) -> list[int]:
    """Offsets of the queries in µs: the sums of the delays before and of each one.

    Raises:
        ImportFailed: a line is no number of seconds, 0 or more; times cannot be left out.
        DiskError: the file cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise ImportFailed(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise disk_error(path, error) from None
    return list(accumulate(_delays_us(path, lines)))


def _delays_us(path: Path, lines: Iterable[str]) -> Iterator[int]:
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            delay_s = float(text)
        except ValueError:
            delay_s = math.nan
        if not 0 <= delay_s <= _LONGEST_S:
            raise ImportFailed(f"{path}, line {number}: {text!r} is not seconds, 0 or more")
        yield round(delay_s * 1e6)


def write_delays(path: Path, offsets_us: Iterable[int]) -> None:
    """Write the delays between these offsets; the first counts from 0."""
    lines = ["# seconds before each query, in the order of their ids"]
    previous_us = 0
    for offset_us in offsets_us:
        lines.append(repr((offset_us - previous_us) / 1e6))
        previous_us = offset_us
    try:
        path.write_text("\n".join([*lines, ""]), encoding="utf-8", newline="\n")
    except OSError as error:
        raise disk_error(path, error) from None


class Offsets:
    """The offset of each query in turn: 0 without a file of delays.

    Raises ImportFailed where the file has fewer delays than there are queries.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._offsets_us = iter(read_delays(path) if path else ())

    def take(self) -> int:
        """The next query's offset in µs."""
        if self._path is None:
            return 0
        found = next(self._offsets_us, None)
        if found is None:
            raise ImportFailed(f"{self._path}: has fewer delays than there are queries")
        return found
