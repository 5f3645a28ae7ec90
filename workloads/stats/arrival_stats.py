"""Times, counts and reuse within the retrievals of a dataset."""

from array import array
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from s2l.workloads.arrival import OK, ArrivalKind
from s2l.workloads.context import common_prefix, contexts
from s2l.workloads.retrieval import Retrieval

_CHUNKS: Final = (ArrivalKind.APPEND, ArrivalKind.REPLACE)


class ArrivalStats:
    """Collects eight bytes for each arrival; fed retrieval after retrieval.

    ``tokens`` has the length of every document. A gap lies between one arrival of a query and
    its next, ``end`` left out; a chunk is an ok arrival with documents.
    """

    def __init__(self, tokens: Mapping[str, int]) -> None:
        self._tokens = tokens
        self.queries = 0
        self.finished = 0
        self.failures = 0
        self.rows = array("q")
        self.chunks = array("q")
        self.gaps_us = array("q")
        self.first_us = array("q")
        self.durations_us = array("q")
        self.chunk_tokens = array("q")
        self.context_tokens = array("q")
        self.prefilled_tokens = array("q")
        self.reused_documents = array("d")
        self.reused_prefix = array("d")
        self.offsets_us = array("q")

    def add(self, retrieval: Retrieval) -> None:
        """Take note of one retrieval."""
        self.queries += 1
        self.offsets_us.append(retrieval.query.offset_us)
        arrivals = [a for a in retrieval.arrivals if a.kind is not ArrivalKind.END]
        self.failures += sum(a.status != OK for a in arrivals)
        for before, after in pairwise(arrivals):
            self.gaps_us.append(after.arrival_us - before.arrival_us)
        if not retrieval.finished:
            return
        self.finished += 1
        self.rows.append(len(arrivals))
        self.durations_us.append(retrieval.arrivals[-1].arrival_us)
        self._add_contexts(retrieval)

    def _add_contexts(self, retrieval: Retrieval) -> None:
        context: tuple[str, ...] = ()
        chunks = prefilled = 0
        for arrival, now in contexts(retrieval.arrivals):
            if arrival.kind in _CHUNKS and arrival.doc_ids:
                if not chunks:
                    self.first_us.append(arrival.arrival_us)
                chunks += 1
                self.chunk_tokens.append(self._length(arrival.doc_ids))
            common = common_prefix(context, now)
            prefilled += self._length(now[common:])
            if arrival.kind is ArrivalKind.REPLACE and context and now:
                self._add_update(context, now, common)
            context = now
        self.chunks.append(chunks)
        self.context_tokens.append(self._length(context))
        self.prefilled_tokens.append(prefilled)

    def _add_update(self, before: tuple[str, ...], now: tuple[str, ...], common: int) -> None:
        tokens = self._length(now) or 1
        known = set(before)
        kept = tuple(doc for doc in now if doc in known)
        self.reused_documents.append(self._length(kept) / tokens)
        self.reused_prefix.append(self._length(now[:common]) / tokens)

    def _length(self, documents: tuple[str, ...]) -> int:
        return sum(self._tokens[doc] for doc in documents)
