"""What a check found wrong with a trace, and where."""

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Problem:
    """``file`` is relative to the trace; ``row`` counts from 0 and is None for the whole file."""

    file: str
    row: int | None
    text: str

    def __str__(self) -> str:
        place = self.file if self.row is None else f"{self.file}, row {self.row}"
        return f"{place}: {self.text}"


class Findings:
    """Collects problems: the first ones of each file, and how many there were."""

    LIMIT: ClassVar[int] = 100

    def __init__(self) -> None:
        self._listed: list[Problem] = []
        self._seen: Counter[str] = Counter()

    def add(self, file: str, row: int | None, text: str) -> None:
        """Take note of a problem."""
        self._seen[file] += 1
        if self._seen[file] <= self.LIMIT:
            self._listed.append(Problem(file, row, text))

    def problems(self) -> list[Problem]:
        """Those listed, and for each file with more a last one that says how many."""
        more = [
            Problem(file, None, f"{n - self.LIMIT} more problems")
            for file, n in self._seen.items()
            if n > self.LIMIT
        ]
        return self._listed + more
