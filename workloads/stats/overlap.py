"""How much of a dataset's text is there more than once."""

from collections import Counter
from hashlib import blake2b
from typing import Final

from s2l.workloads.arrival import Arrival
from s2l.workloads.document import Document

LINE_CHARS: Final = 40
"""Shorter lines are left out: headings and menu items are alike everywhere."""

SKETCH_LINES: Final = 100_000
"""Lines that are held at most; of larger datasets a sample by hash is, which is unbiased."""

_FULL: Final = 1 << 64


class Overlap:
    """Fed documents, then arrivals; holds ids, hashes and a sample of lines."""

    def __init__(self) -> None:
        self._documents = 0
        self._digests: Counter[str] = Counter()
        self._lines: dict[int, tuple[int, int]] = {}
        self._below = _FULL
        self._queries_of: dict[str, tuple[str, int]] = {}

    def add_document(self, document: Document) -> None:
        """Take note of a document's hash and its lines."""
        self._documents += 1
        self._digests[document.text_sha256] += 1
        for line in set((document.text or "").splitlines()):
            if len(line) >= LINE_CHARS:
                self._add_line(line)

    def add_arrivals(self, arrivals: tuple[Arrival, ...]) -> None:
        """Take note of which query uses which documents."""
        for arrival in arrivals:
            for doc in arrival.doc_ids:
                last, count = self._queries_of.get(doc, ("", 0))
                if last != arrival.query_id:
                    self._queries_of[doc] = (arrival.query_id, count + 1)

    def _add_line(self, line: str) -> None:
        place = int.from_bytes(blake2b(line.encode(), digest_size=8).digest(), "big")
        if place >= self._below:
            return
        seen, chars = self._lines.get(place, (0, len(line)))
        self._lines[place] = (seen + 1, chars)
        if len(self._lines) > SKETCH_LINES:
            self._below //= 2
            self._lines = {key: one for key, one in self._lines.items() if key < self._below}

    @property
    def duplicate_share(self) -> float | None:
        """Documents whose whole text an earlier one has, of all."""
        if not self._documents:
            return None
        return 1 - len(self._digests) / self._documents

    @property
    def repeated_line_share(self) -> float | None:
        """Characters in lines that an earlier document has, of all in lines of some length."""
        total = sum(seen * chars for seen, chars in self._lines.values())
        if not total:
            return None
        return sum((seen - 1) * chars for seen, chars in self._lines.values()) / total

    @property
    def queries_per_document(self) -> float | None:
        """Mean number of queries that use a document that is used at all."""
        uses = [count for _, count in self._queries_of.values()]
        return sum(uses) / len(uses) if uses else None

    @property
    def shared_share(self) -> float | None:
        """Documents that more than one query uses, of those that are used."""
        uses = [count for _, count in self._queries_of.values()]
        return sum(count > 1 for count in uses) / len(uses) if uses else None
