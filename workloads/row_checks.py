"""What every row of a trace must hold; one class per table, fed row after row."""

from collections import Counter
from hashlib import sha256
from typing import Final

import msgspec

from s2l.workloads.arrival import OK, ArrivalKind
from s2l.workloads.problem import Findings

_KINDS: Final = {kind.value for kind in ArrivalKind}
_WITH_DOCUMENTS: Final = {ArrivalKind.APPEND.value, ArrivalKind.REPLACE.value}
_META: Final = msgspec.json.Decoder(dict)


class _Checks:
    """Counts rows and reports what is wrong with them."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._place = ("", 0)
        self.rows = 0

    def _at(self, file: str, row: int) -> None:
        self._place = (file, row)
        self.rows += 1

    def _bad(self, text: str) -> None:
        self._findings.add(*self._place, text)

    def _check_meta(self, meta: str) -> None:
        if meta == "{}":
            return
        try:
            _META.decode(meta)
        except (msgspec.MsgspecError, ValueError):
            self._bad("meta is not a JSON object")


class QueryChecks(_Checks):
    """Unique ids; ``places`` has the number of every query by its id."""

    def __init__(self, findings: Findings) -> None:
        super().__init__(findings)
        self.places: dict[str, int] = {}

    def row(
        self, file: str, row: int, query_id: str, text: str, answers: list[str], at: int, meta: str
    ) -> None:
        """Check one row of ``queries.parquet``."""
        self._at(file, row)
        if not query_id:
            self._bad("query_id is empty")
        if query_id in self.places:
            self._bad(f"query_id {query_id!r} occurs twice")
        if at < 0:
            self._bad(f"offset_us {at} is below 0")
        self._check_meta(meta)
        self.places.setdefault(query_id, row)


class DocumentChecks(_Checks):
    """Unique ids, and texts that are those their hashes and lengths describe."""

    def __init__(self, findings: Findings, hidden: bool) -> None:
        super().__init__(findings)
        self.ids: set[str] = set()
        self._hidden = hidden

    def row(self, file: str, row: int, doc_id: str, url: str, title: str, *rest: object) -> None:
        """Check one row of ``documents/``."""
        self._at(file, row)
        text, digest, n_chars, _mime, _fetched, meta = rest
        if not doc_id:
            self._bad("doc_id is empty")
        if doc_id in self.ids:
            self._bad(f"doc_id {doc_id!r} occurs twice")
        self.ids.add(doc_id)
        self._check_meta(str(meta))
        if isinstance(text, str):
            self._check_text(text, digest, n_chars)
        elif not self._hidden:
            self._bad("text is null, and privacy is full")

    def _check_text(self, text: str, digest: object, n_chars: object) -> None:
        if self._hidden:
            self._bad("has a text, and the privacy setting hides texts")
        if sha256(text.encode()).hexdigest() != digest:
            self._bad("text_sha256 is not that of the text")
        if len(text) != n_chars:
            self._bad(f"n_chars is {n_chars}; the text has {len(text)}")


class ArrivalChecks(_Checks):
    """Order, times, ends and references of arrivals."""

    def __init__(self, findings: Findings, places: dict[str, int], doc_ids: set[str]) -> None:
        super().__init__(findings)
        self.finished = 0
        self.failures: Counter[str] = Counter()
        self._places = places
        self._doc_ids = doc_ids
        self._query: str | None = None
        self._query_place = -1
        self._seq = 0
        self._last_us = 0
        self._ended = False

    def row(
        self,
        file: str,
        row: int,
        query_id: str,
        seq: int,
        kind: str,
        start_us: int,
        arrival_us: int,
        doc_ids: list[str],
        status: str,
        detail: str,
        meta: str,
    ) -> None:
        """Check one row of ``arrivals/``."""
        self._at(file, row)
        if query_id != self._query:
            self._next_query(query_id)
        self._check_order(seq, kind)
        self._check_times(start_us, arrival_us)
        if doc_ids:
            self._check_documents(kind, status, doc_ids)
        if status != OK:
            self.failures[status] += 1
        self._check_meta(meta)

    def _next_query(self, query_id: str) -> None:
        place = self._places.get(query_id)
        if place is None:
            self._bad(f"query_id {query_id!r} is not in queries.parquet")
        elif place <= self._query_place:
            self._bad(f"query {query_id!r} is not in the order of queries.parquet")
        else:
            self._query_place = place
        self._query, self._seq, self._last_us, self._ended = query_id, 0, 0, False

    def _check_order(self, seq: int, kind: str) -> None:
        if seq != self._seq:
            self._bad(f"seq is {seq}; {self._seq} follows")
        self._seq = seq + 1
        if self._ended:
            self._bad("comes after its query's end")
        if kind not in _KINDS:
            self._bad(f"kind {kind!r} is not one of {', '.join(sorted(_KINDS))}")
        if kind == ArrivalKind.END.value:
            self.finished += not self._ended
            self._ended = True

    def _check_times(self, start_us: int, arrival_us: int) -> None:
        if not 0 <= start_us <= arrival_us:
            self._bad(f"start_us {start_us} is not in 0..arrival_us ({arrival_us})")
        if arrival_us < self._last_us:
            self._bad(f"arrival_us {arrival_us} is before the one before ({self._last_us})")
        self._last_us = arrival_us

    def _check_documents(self, kind: str, status: str, doc_ids: list[str]) -> None:
        if status != OK or kind not in _WITH_DOCUMENTS:
            self._bad("only an ok append or replace may have documents")
        for doc_id in doc_ids:
            if doc_id not in self._doc_ids:
                self._bad(f"document {doc_id!r} is not in documents/")
