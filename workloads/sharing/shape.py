"""The figures of a trace that its card shows, also where its texts are hidden."""

from s2l.workloads.stats.arrival_stats import ArrivalStats
from s2l.workloads.stats.dataset_stats import characterise
from s2l.workloads.stats.distribution import Distribution, distribution
from s2l.workloads.token_counter import TokenCounter
from s2l.workloads.trace import Trace

Shape = dict[str, Distribution]
"""Distributions by name, as in the labels of statistics."""


def shape_of(trace: Trace, counter: TokenCounter) -> Shape:
    """The distributions of a trace; those of tokens only where the lengths of texts are known."""
    if trace.manifest.privacy == "full" or _says_tokens(trace):
        return characterise(trace, counter).distributions
    stats = ArrivalStats({document.doc_id: 0 for document in trace.documents()})
    for retrieval in trace.retrievals():
        stats.add(retrieval)
    return {
        "arrivals_per_query": distribution(stats.rows, "arrivals"),
        "chunks_per_query": distribution(stats.chunks, "chunks"),
        "gap_s": distribution(stats.gaps_us, "s", 1e6),
        "first_chunk_s": distribution(stats.first_us, "s", 1e6),
        "duration_s": distribution(stats.durations_us, "s", 1e6),
    }


def _says_tokens(trace: Trace) -> bool:
    return all(isinstance(one.meta.get("tokens"), int) for one in trace.documents())
