"""What is in a trace, in figures: one pass over its arrivals."""

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from s2l.workloads.arrival import OK, ArrivalKind
from s2l.workloads.retrieval import Retrieval
from s2l.workloads.trace import Trace

_CHUNKS = (ArrivalKind.APPEND, ArrivalKind.REPLACE)


@dataclass(frozen=True, slots=True)
class TraceInfo:
    """Figures of one trace. Durations are in seconds, None where too few samples tell.

    A gap lies between one arrival of a query and its next, the ``end`` row left out. A duration
    is that of a finished retrieval, its ``end`` included. A chunk is an ok ``append`` or
    ``replace`` with documents; ``chunks_per_query`` is the mean of finished retrievals.
    """

    name: str
    collector: str
    created_utc: str
    queries: int
    finished_queries: int
    arrivals: dict[str, int]
    failures: dict[str, int]
    documents: int
    bytes: int
    gap_median_s: float | None
    gap_p95_s: float | None
    duration_median_s: float | None
    duration_p95_s: float | None
    chunks_per_query: float | None


class _Tally:
    """What is counted on the way; times are kept as plain int64."""

    def __init__(self) -> None:
        self.queries = 0
        self.finished = 0
        self.chunks = 0
        self.kinds: Counter[ArrivalKind] = Counter()
        self.failures: Counter[str] = Counter()
        self.gaps_us = array("q")
        self.durations_us = array("q")

    def add(self, retrieval: Retrieval) -> None:
        self.queries += 1
        previous_us: int | None = None
        chunks = 0
        for arrival in retrieval.arrivals:
            self.kinds[arrival.kind] += 1
            if arrival.status != OK:
                self.failures[arrival.status] += 1
            chunks += arrival.kind in _CHUNKS and bool(arrival.doc_ids)
            if previous_us is not None and arrival.kind is not ArrivalKind.END:
                self.gaps_us.append(arrival.arrival_us - previous_us)
            previous_us = arrival.arrival_us
        if retrieval.finished:
            self.finished += 1
            self.chunks += chunks
            self.durations_us.append(retrieval.arrivals[-1].arrival_us)


def describe(trace: Trace) -> TraceInfo:
    """The figures of a trace. Keeps eight bytes per arrival."""
    tally = _Tally()
    for retrieval in trace.retrievals():
        tally.add(retrieval)
    manifest = trace.manifest
    return TraceInfo(
        name=manifest.name,
        collector=f"{manifest.collector.name} {manifest.collector.version}",
        created_utc=manifest.created_utc,
        queries=tally.queries,
        finished_queries=tally.finished,
        arrivals={kind.value: tally.kinds[kind] for kind in ArrivalKind},
        failures=dict(sorted(tally.failures.items())),
        documents=manifest.counts.documents,
        bytes=sum(entry.bytes for entry in manifest.files),
        gap_median_s=_percentile_s(tally.gaps_us, 50),
        gap_p95_s=_percentile_s(tally.gaps_us, 95),
        duration_median_s=_percentile_s(tally.durations_us, 50),
        duration_p95_s=_percentile_s(tally.durations_us, 95),
        chunks_per_query=tally.chunks / tally.finished if tally.finished else None,
    )


def _percentile_s(times_us: Sequence[int], percent: int) -> float | None:
    """By linear interpolation; None with fewer samples than 1 / (1 - p)."""
    if len(times_us) * (100 - percent) < 100:
        return None
    return float(np.percentile(np.asarray(times_us, dtype=np.int64), percent)) / 1e6
