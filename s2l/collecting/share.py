"""What one of several workers imports: contiguous pieces, so that their order is the whole's."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.errors import ImportFailed
from s2l.workloads.formats.base import Format, ImportOptions, Record
from s2l.workloads.formats.import_log import ImportLog


class Share(Protocol):
    """One worker's piece of a source."""

    def read(
        self, fmt: Format, source: Path, options: ImportOptions, log: ImportLog
    ) -> Iterator[Record]:
        """Its records; raises what the format's reader does."""


@dataclass(frozen=True, slots=True)
class ByFiles:
    """Some files of a folder, each of which can be read by itself."""

    files: tuple[Path, ...]

    @classmethod
    def of(cls, files: Sequence[Path], workers: int) -> "list[ByFiles]":
        """Neighbouring files for each worker, of about the same bytes in all."""
        sizes = [file.stat().st_size for file in files]
        total, before = max(1, sum(sizes)), 0
        shares: list[list[Path]] = [[] for _ in range(workers)]
        for file, size in zip(files, sizes, strict=True):
            shares[min(workers - 1, before * workers // total)].append(file)
            before += size
        return [cls(tuple(share)) for share in shares]

    def read(
        self, fmt: Format, source: Path, options: ImportOptions, log: ImportLog
    ) -> Iterator[Record]:
        """The records of these files, one after the other."""
        for file in self.files:
            if not file.is_file():
                raise ImportFailed(f"{file}: missing; every machine needs the folder as it is here")
            yield from fmt.read(file, options, log)


@dataclass(frozen=True, slots=True)
class ByRows:
    """The rows of one piece of the bytes. All rows are read, as one may depend on others; the
    texts of the others are not made."""

    worker: int
    workers: int

    def read(
        self, fmt: Format, source: Path, options: ImportOptions, log: ImportLog
    ) -> Iterator[Record]:
        """The records of these rows. A query's documents come before it, and its end is last."""
        place = _Place(log)
        mine, between = False, True
        for record in fmt.read(source, options, log):
            if between:
                mine = place.piece(self.workers) == self.worker
            between = isinstance(record, Arrival) and record.kind is ArrivalKind.END
            if mine:
                yield record


class _Place:
    """Follows how many bytes are read of how many; those before the first row do not count."""

    def __init__(self, log: ImportLog) -> None:
        self._tell, log.tell = log.tell, self._note
        self._done = self._total = 0
        self._first: int | None = None

    def piece(self, pieces: int) -> int:
        """In which of so many equal pieces the row that was just read ends."""
        if self._first is None:
            self._first = self._done
        rows_bytes = max(1, self._total - self._first)
        return min(pieces - 1, (self._done - self._first) * pieces // rows_bytes)

    def _note(self, done: int, total: int) -> None:
        self._done, self._total = done, total
        self._tell(done, total)
