"""Going through a trace with the documents of each query at hand, in bounded memory."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from s2l.workloads.document import Document
from s2l.workloads.retrieval import Retrieval
from s2l.workloads.trace import Trace

BATCH_QUERIES: Final = 256
"""Queries whose documents are held at a time."""


def retrievals_with_documents(
    trace: Trace, batch: int = BATCH_QUERIES
) -> Iterator[tuple[Retrieval, Mapping[str, Document]]]:
    """Every retrieval with at least the documents that it names, by id.

    Raises:
        NotATrace: the trace is damaged, or lacks a document that an arrival names.
    """
    retrievals = trace.retrievals()
    while chosen := list(islice(retrievals, batch)):
        wanted = {doc for r in chosen for a in r.arrivals for doc in a.doc_ids}
        found = {document.doc_id: document for document in trace.documents(wanted)}
        for retrieval in chosen:
            yield retrieval, found
