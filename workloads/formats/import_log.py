"""What an import saw: every row counted, every bad one named."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from s2l.workloads.errors import ImportFailed


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row, or with line 0 a whole file, that was left out."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        place = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{place}: {self.text}"


@dataclass(slots=True)
class ImportLog:
    """Counts rows as they are read; ``rows`` is always ``good`` + ``bad``.

    ``strict`` makes the first bad row fatal. ``tell`` is called with the bytes read so far and
    the bytes of all files. ``facts`` is what the files say about the whole trace.
    """

    LISTED: ClassVar[int] = 100

    strict: bool = False
    tell: Callable[[int, int], None] = lambda done, total: None
    files: int = 0
    rows: int = 0
    bad: int = 0
    side_rows: int = 0
    bad_files: int = 0
    listed: list[BadRow] = field(default_factory=list)
    warnings: Counter[str] = field(default_factory=Counter)
    facts: dict[str, Any] = field(default_factory=dict)
    _done_bytes: int = 0
    _total_bytes: int = 0

    @property
    def good(self) -> int:
        """Rows that are in the trace."""
        return self.rows - self.bad

    def expect(self, *files: Path) -> None:
        """These files will be read."""
        self._total_bytes += sum(file.stat().st_size for file in files)

    def advance(self, n_bytes: int) -> None:
        """So many bytes more are read."""
        self._done_bytes += n_bytes
        self.tell(self._done_bytes, self._total_bytes)

    def reject(self, file: Path, line: int, reason: object, *, rows: int = 1) -> None:
        """Leave a row out, or with line 0 a whole file of ``rows`` rows; they count as read.

        Raises:
            ImportFailed: the import is strict.
        """
        found = BadRow(str(file), line, " ".join(str(reason).split()))
        if self.strict:
            raise ImportFailed(f"{found} (--strict)")
        self.bad += rows
        self.bad_files += line == 0
        if len(self.listed) < self.LISTED:
            self.listed.append(found)

    def set_aside(self) -> None:
        """Count the good rows so far as those of side files, which are no rows of the trace."""
        self.side_rows += self.good
        self.rows = self.bad

    def warn(self, what: str, n: int = 1) -> None:
        """Count something that is odd and was kept."""
        self.warnings[what] += n
