"""A workload characterised: two passes over a trace, its documents and its retrievals."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from s2l.workloads.document import Document
from s2l.workloads.errors import TraceError
from s2l.workloads.stats.arrival_stats import ArrivalStats
from s2l.workloads.stats.burstiness import Burstiness, burstiness
from s2l.workloads.stats.distribution import Distribution, distribution
from s2l.workloads.stats.overlap import Overlap
from s2l.workloads.token_counter import TokenCounter
from s2l.workloads.trace import Trace

_BATCH_DOCUMENTS = 64


@dataclass(frozen=True, slots=True)
class Reuse:
    """Shares from 0 to 1, None where nothing is to be shared.

    ``update_documents`` and ``update_prefix``: tokens of a replaced context that were there
    before, anywhere or in the same place from the start on (what a prefix cache can keep); means
    over the updates. ``wasted_prefill``: of all tokens that streaming has to prefill, those that
    are not in the final context. ``duplicate_documents``: whole texts that an earlier document
    has. ``repeated_lines``: characters in lines that an earlier document has.
    ``shared_documents``: documents that more than one query uses.
    """

    update_documents: float | None
    update_prefix: float | None
    wasted_prefill: float | None
    duplicate_documents: float | None
    repeated_lines: float | None
    shared_documents: float | None
    queries_per_document: float | None


@dataclass(frozen=True, slots=True)
class DatasetStats:
    """All figures of one dataset; ``distributions`` by what they are of."""

    name: str
    sha256: str
    tokens_of: str
    queries: int
    finished_queries: int
    documents: int
    failed_arrivals: int
    distributions: dict[str, Distribution]
    reuse: Reuse
    burstiness: Burstiness


def characterise(
    trace: Trace, counter: TokenCounter, tell: Callable[[int], None] = lambda done: None
) -> DatasetStats:
    """The figures of a trace. Keeps ids, hashes and numbers, and of texts a sample of lines.

    Tokens are counted with ``counter``; a hidden text counts as it says itself.

    Raises:
        TraceError: it is damaged, or a hidden text does not say its length.
    """
    overlap = Overlap()
    tokens = _document_tokens(trace, counter, overlap)
    stats = ArrivalStats(tokens)
    for done, retrieval in enumerate(trace.retrievals(), start=1):
        stats.add(retrieval)
        overlap.add_arrivals(retrieval.arrivals)
        tell(done)
    questions = [n for batch in _texts(trace) for n in counter.count(batch)]
    return DatasetStats(
        name=trace.manifest.name,
        sha256=trace.sha256,
        tokens_of=counter.name,
        queries=stats.queries,
        finished_queries=stats.finished,
        documents=len(tokens),
        failed_arrivals=stats.failures,
        distributions=_distributions(stats, list(tokens.values()), questions),
        reuse=_reuse(stats, overlap),
        burstiness=burstiness(stats.offsets_us),
    )


def _document_tokens(trace: Trace, counter: TokenCounter, overlap: Overlap) -> dict[str, int]:
    found: dict[str, int] = {}
    documents = trace.documents()
    while batch := list(islice(documents, _BATCH_DOCUMENTS)):
        for document in batch:
            overlap.add_document(document)
        shown = [document for document in batch if document.text is not None]
        counts = counter.count([document.text or "" for document in shown])
        found |= {one.doc_id: n for one, n in zip(shown, counts, strict=True)}
        found |= {one.doc_id: _said(trace, one) for one in batch if one.text is None}
    return found


def _said(trace: Trace, document: Document) -> int:
    said = document.meta.get("tokens")
    if not isinstance(said, int):
        raise TraceError(
            f"{trace.path}: the texts are hidden (privacy {trace.manifest.privacy}); tokens can "
            "be counted in a trace with texts only"
        )
    return said


def _texts(trace: Trace) -> Iterator[list[str]]:
    queries = trace.queries()
    while batch := [query.text for query in islice(queries, 1024)]:
        yield batch


def _distributions(
    stats: ArrivalStats, documents: list[int], questions: list[int]
) -> dict[str, Distribution]:
    return {
        "arrivals_per_query": distribution(stats.rows, "arrivals"),
        "chunks_per_query": distribution(stats.chunks, "chunks"),
        "gap_s": distribution(stats.gaps_us, "s", 1e6),
        "first_chunk_s": distribution(stats.first_us, "s", 1e6),
        "duration_s": distribution(stats.durations_us, "s", 1e6),
        "context_tokens": distribution(stats.context_tokens, "tokens"),
        "chunk_tokens": distribution(stats.chunk_tokens, "tokens"),
        "document_tokens": distribution(documents, "tokens"),
        "question_tokens": distribution(questions, "tokens"),
    }


def _reuse(stats: ArrivalStats, overlap: Overlap) -> Reuse:
    prefilled, final = sum(stats.prefilled_tokens), sum(stats.context_tokens)
    return Reuse(
        update_documents=_mean(stats.reused_documents),
        update_prefix=_mean(stats.reused_prefix),
        wasted_prefill=1 - final / prefilled if prefilled else None,
        duplicate_documents=overlap.duplicate_share,
        repeated_lines=overlap.repeated_line_share,
        shared_documents=overlap.shared_share,
        queries_per_document=overlap.queries_per_document,
    )


def _mean(values: Any) -> float | None:
    return sum(values) / len(values) if values else None


def stats_json(stats: list[DatasetStats]) -> bytes:
    """One JSON object with every dataset's figures, curves and all."""
    return msgspec.json.encode({"datasets": stats})
