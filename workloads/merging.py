"""Several traces as one: the parts that were captured apart, put together again."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from heapq import merge

from s2l.workloads.errors import TraceError
from s2l.workloads.query import Query
from s2l.workloads.retrieval import Retrieval
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter

OffsetOf = Callable[[Query], int]
"""When a query is asked in the merged trace, in microseconds since its start."""


def merge_traces(
    parts: Sequence[Trace],
    writer: TraceWriter,
    *,
    offset_us: OffsetOf | None = None,
    merged: Callable[[Retrieval], None] = lambda retrieval: None,
) -> None:
    """Write everything of all parts; the writer is neither flushed nor finished.

    Queries come in the order of their offsets, those with the same one in the order of the parts.
    A document that several parts have is written once, as the first of them has it. All parts
    count from the same moment; with ``offset_us``, which is asked in the order of the result, the
    queries get other offsets. ``merged`` is called after each query. Memory holds ids, and a batch
    of rows of each part.

    Raises:
        TraceError: two parts have the same query, or the disk would not take it.
        NotATrace: a part is damaged.
    """
    for part in parts:
        for document in part.documents():
            writer.add_document(document)
    for retrieval in _in_order(parts):
        _write(writer, retrieval, offset_us)
        merged(retrieval)


def _in_order(parts: Sequence[Trace]) -> Iterator[Retrieval]:
    # A part is sorted by offset already; equal offsets are taken from the earlier part first.
    return merge(*(part.retrievals() for part in parts), key=lambda one: one.query.offset_us)


def _write(writer: TraceWriter, retrieval: Retrieval, offset_us: OffsetOf | None) -> None:
    query = retrieval.query
    if offset_us is not None:
        query = replace(query, offset_us=offset_us(query))
    try:
        writer.add_query(query)
        for arrival in retrieval.arrivals:
            writer.add_arrival(arrival)
    except ValueError as error:
        raise TraceError(f"{writer.path}: the parts do not fit together: {error}") from None
