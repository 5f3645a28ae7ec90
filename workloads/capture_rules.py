"""What may be added to a trace after what; checked while it is captured."""

from collections.abc import Iterable
from dataclasses import dataclass

from s2l.workloads.arrival import OK, Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.id_set import IdSet
from s2l.workloads.query import Query

_WITH_DOCUMENTS = frozenset({ArrivalKind.APPEND, ArrivalKind.REPLACE})
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1


@dataclass(slots=True)
class _OpenQuery:
    row: int
    next_seq: int = 0
    last_us: int = 0


class CaptureRules:
    """Remembers every id; what it knows of a query's arrivals is dropped at its ``end``."""

    def __init__(self) -> None:
        self._queries = IdSet()
        self._rows = 0
        self._documents = IdSet()
        self._open: dict[str, _OpenQuery] = {}

    def restore(self, queries: Iterable[str], query_rows: int, documents: Iterable[str]) -> None:
        """Take over a log: its finished queries, the rows of all its queries, its documents."""
        self._queries.update(queries)
        self._rows = query_rows
        self._documents.update(documents)

    def check_query(self, query: Query) -> None:
        """Raises ValueError where the query may not be added."""
        if not query.query_id:
            raise ValueError("a query needs a query_id")
        if query.query_id in self._queries:
            raise ValueError(f"query {query.query_id!r} was added before")
        if not 0 <= query.offset_us <= _INT64_MAX:
            raise ValueError(f"query {query.query_id!r}: offset_us {query.offset_us} is not >= 0")

    def add_query(self, query_id: str) -> None:
        """Take note of a query; the order of these calls is the order of its rows."""
        self._open[query_id] = _OpenQuery(self._rows)
        self._queries.add(query_id)
        self._rows += 1

    def has_document(self, doc_id: str) -> bool:
        """Whether the document is already in the trace."""
        return doc_id in self._documents

    def check_document(self, document: Document) -> None:
        """Raises ValueError where the document may not be added."""
        if not document.doc_id:
            raise ValueError("a document needs a doc_id")
        length = document.n_chars if document.text is None else len(document.text)
        if document.n_chars != length or not 0 <= length <= _INT32_MAX:
            raise ValueError(f"document {document.doc_id!r}: n_chars is not its text's length")

    def add_document(self, doc_id: str) -> None:
        """Take note of a document."""
        self._documents.add(doc_id)

    def check_arrival(self, arrival: Arrival) -> int:
        """The row of the arrival's query. Raises ValueError where it may not be added."""
        state = self._open.get(arrival.query_id)
        if state is None:
            known = arrival.query_id in self._queries
            why = "has ended" if known else "was not added"
            raise ValueError(f"{_name(arrival)}: its query {why}")
        if arrival.seq != state.next_seq:
            raise ValueError(f"{_name(arrival)}: seq must be {state.next_seq}")
        if not state.last_us <= arrival.arrival_us <= _INT64_MAX:
            raise ValueError(f"{_name(arrival)}: arrival_us must be >= {state.last_us}")
        if not 0 <= arrival.start_us <= arrival.arrival_us:
            raise ValueError(f"{_name(arrival)}: start_us must be in 0..arrival_us")
        if arrival.doc_ids:
            self._check_documents(arrival)
        return state.row

    def add_arrival(self, arrival: Arrival) -> None:
        """Take note of an arrival that ``check_arrival`` let through."""
        if arrival.kind == ArrivalKind.END:
            del self._open[arrival.query_id]
            return
        state = self._open[arrival.query_id]
        state.next_seq += 1
        state.last_us = arrival.arrival_us

    def _check_documents(self, arrival: Arrival) -> None:
        if arrival.status != OK or arrival.kind not in _WITH_DOCUMENTS:
            raise ValueError(f"{_name(arrival)}: only an ok append or replace has documents")
        for doc_id in arrival.doc_ids:
            if doc_id not in self._documents:
                raise ValueError(f"{_name(arrival)}: add document {doc_id!r} before it")


def _name(arrival: Arrival) -> str:
    return f"arrival {arrival.query_id!r}/{arrival.seq}"
