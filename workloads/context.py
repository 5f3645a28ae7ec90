"""The context of a query after each of its arrivals."""

from collections.abc import Iterable, Iterator, Sequence

from s2l.workloads.arrival import Arrival, ArrivalKind


def contexts(arrivals: Iterable[Arrival]) -> Iterator[tuple[Arrival, tuple[str, ...]]]:
    """Each arrival but ``end``, with the ids of the whole context as it is from then on."""
    context: tuple[str, ...] = ()
    for arrival in arrivals:
        if arrival.kind is ArrivalKind.END:
            return
        if arrival.kind is ArrivalKind.REPLACE and arrival.status == "ok":
            context = arrival.doc_ids
        else:
            context += arrival.doc_ids
        yield arrival, context


def final_context(arrivals: Iterable[Arrival]) -> tuple[str, ...]:
    """The ids of the documents that are there when the retrieval is over."""
    context: tuple[str, ...] = ()
    for _, after in contexts(arrivals):
        context = after
    return context


def common_prefix(one: Sequence[object], other: Sequence[object]) -> int:
    """How many elements both begin with: documents of two contexts, or tokens of two prompts."""
    shorter = min(len(one), len(other))
    if one[:shorter] == other[:shorter]:  # the usual case, at the speed of a comparison
        return shorter
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), shorter)
