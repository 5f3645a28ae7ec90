"""The shape of a query: when how much context comes, without any text."""

from dataclasses import dataclass

from s2l.workloads.arrival import OK, ArrivalKind


@dataclass(frozen=True, slots=True)
class ArrivalShape:
    """One arrival; ``documents`` are numbers within the query."""

    kind: ArrivalKind
    start_us: int
    arrival_us: int
    documents: tuple[int, ...] = ()
    status: str = OK


@dataclass(frozen=True, slots=True)
class QueryShape:
    """A query's arrivals in order, ``end`` left out: it comes at ``end_us``.

    ``document_tokens`` has the length of each document by its number.
    """

    arrivals: tuple[ArrivalShape, ...]
    end_us: int
    document_tokens: tuple[int, ...]
    question_tokens: int = 0
    output_tokens: int | None = None

    @property
    def context_tokens(self) -> int:
        """Tokens of the context when the retrieval is over."""
        context: tuple[int, ...] = ()
        for arrival in self.arrivals:
            replaces = arrival.kind is ArrivalKind.REPLACE
            context = arrival.documents if replaces else context + arrival.documents
        return sum(self.document_tokens[number] for number in context)
