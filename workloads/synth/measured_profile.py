"""Shapes like those of a dataset: whole queries drawn again, with a little room around each."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from s2l.workloads.arrival import Arrival
from s2l.workloads.errors import TraceError
from s2l.workloads.retrieval import Retrieval
from s2l.workloads.synth.draws import Floats, Source, blocks
from s2l.workloads.synth.profile import BLOCK_QUERIES
from s2l.workloads.synth.shape import ArrivalShape, QueryShape
from s2l.workloads.token_counter import TokenCounter, document_tokens
from s2l.workloads.trace import Trace

SHAPES_LIMIT: Final = 100_000
"""Of larger datasets the first so many finished queries are taken."""

_ROOM: Final = 0.05
"""Standard deviation of the logarithm of what times and lengths are multiplied by."""


@dataclass(frozen=True, slots=True)
class MeasuredProfile:
    """Draws whole shapes, evenly over those measured, so that what went together stays together.

    Each query's times are stretched by one factor and its lengths by another, both with mean 1.
    """

    name: str
    measured: Sequence[QueryShape]

    def shapes(self, n: int, seed: int) -> Iterator[QueryShape]:
        """The shapes of n queries."""
        for number, size in blocks(n, BLOCK_QUERIES):
            source = Source(3, seed, number)
            chosen = source.strata(source.uniforms(size)) * len(self.measured)
            times, tokens = _factors(size, source), _factors(size, source)
            for i, place in enumerate(chosen.astype(np.int64).tolist()):
                yield stretched(self.measured[place], times[i], tokens[i])


def _factors(n: int, source: Source) -> Floats:
    found: Floats = np.exp(_ROOM * source.normals(n) - _ROOM * _ROOM / 2)
    return found


def stretched(shape: QueryShape, time_factor: float, token_factor: float) -> QueryShape:
    """The shape with its times and its lengths multiplied."""
    arrivals = tuple(
        replace(
            a,
            start_us=round(a.start_us * time_factor),
            arrival_us=round(a.arrival_us * time_factor),
        )
        for a in shape.arrivals
    )
    lengths = tuple(_whole(n * token_factor) if n else 0 for n in shape.document_tokens)
    end_us = round(shape.end_us * time_factor)
    return replace(shape, arrivals=arrivals, end_us=end_us, document_tokens=lengths)


def _whole(tokens: float) -> int:
    return max(1, math.floor(tokens + 0.5))


def measure(trace: Trace, counter: TokenCounter) -> MeasuredProfile:
    """The profile of a dataset's finished queries.

    Raises:
        TraceError: it has none, or its texts are hidden and have no counts.
    """
    lengths: dict[str, int] = {}
    try:
        for document in trace.documents():
            lengths[document.doc_id] = document_tokens(document, counter)
    except ValueError as error:
        raise TraceError(f"{trace.path}: {error}") from None
    found: list[QueryShape] = []
    for retrieval in trace.retrievals():
        if retrieval.finished and len(found) < SHAPES_LIMIT:
            found.append(_shape(retrieval, lengths, counter))
    if not found:
        raise TraceError(f"{trace.path}: no query in it has a finished retrieval to be like")
    return MeasuredProfile(f"like {trace.manifest.name}", found)


def _shape(retrieval: Retrieval, lengths: dict[str, int], counter: TokenCounter) -> QueryShape:
    numbers: dict[str, int] = {}
    for arrival in retrieval.arrivals:
        for doc in arrival.doc_ids:
            numbers.setdefault(doc, len(numbers))
    *arrivals, end = retrieval.arrivals
    query = retrieval.query
    output = query.meta.get("output_tokens")
    said = query.meta.get("tokens")
    return QueryShape(
        tuple(_arrival(arrival, numbers) for arrival in arrivals),
        end.arrival_us,
        tuple(lengths[doc] for doc in numbers),
        said if isinstance(said, int) else counter.count([query.text])[0],
        output if isinstance(output, int) else None,
    )


def _arrival(arrival: Arrival, numbers: dict[str, int]) -> ArrivalShape:
    documents = tuple(numbers[doc] for doc in arrival.doc_ids)
    times = (arrival.start_us, arrival.arrival_us)
    return ArrivalShape(arrival.kind, *times, documents, arrival.status)
