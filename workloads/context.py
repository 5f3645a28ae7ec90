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
    """How many elements both begin with: documents of two contexts, tokens or bytes of two prompts.

    By bisection, as it is asked for between measurements: slices compare ten times as fast as
    elements one by one.
    """
    if type(one) is not type(other):  # a list's slice never equals a tuple's
        one, other = tuple(one), tuple(other)
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:  # the usual case
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
