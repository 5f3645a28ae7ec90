"""The figures of datasets side by side, as text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from s2l.workloads.stats.dataset_stats import DatasetStats
from s2l.workloads.stats.distribution import PERCENTILES, Distribution

LABELS: Final[dict[str, str]] = {
    "arrivals_per_query": "Arrivals a query",
    "chunks_per_query": "Chunks a query",
    "gap_s": "Gap between arrivals",
    "first_chunk_s": "First chunk after the query",
    "duration_s": "Duration of the retrieval",
    "context_tokens": "Tokens of the final context",
    "chunk_tokens": "Tokens of a chunk",
    "document_tokens": "Tokens of a document",
    "question_tokens": "Tokens of a question",
}
COLUMNS: Final = ("n", "mean", "min", *(f"p{p}" for p in PERCENTILES), "max")


@dataclass(frozen=True, slots=True)
class StatsRow:
    """A label, and a cell for each column or dataset."""

    label: str
    cells: tuple[str, ...]


def figure(value: float | None) -> str:
    """Three digits or more: ``0.0367``, ``9.87``, ``13,006``."""
    if value is None:
        return "n/a"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{3 if abs(value) >= 100 else 4}g}" if abs(value) >= 0.001 else f"{value:.2g}"


def share(value: float | None) -> str:
    """A share in per cent."""
    return "n/a" if value is None else f"{100 * value:.1f} %"


def distribution_rows(found: Sequence[DatasetStats], key: str) -> list[StatsRow]:
    """One row a dataset, with the cells of ``COLUMNS``."""
    return [StatsRow(one.name, _cells(one.distributions[key])) for one in found]


def _cells(found: Distribution) -> tuple[str, ...]:
    middle = (figure(found.percentiles[f"p{p}"]) for p in PERCENTILES)
    return (f"{found.n:,}", figure(found.mean), figure(found.min), *middle, figure(found.max))


def unit_of(found: Sequence[DatasetStats], key: str) -> str:
    """The unit of a distribution."""
    return found[0].distributions[key].unit


def other_rows(found: Sequence[DatasetStats]) -> list[StatsRow]:
    """Counts, reuse and burstiness: one cell a dataset."""
    rows = {
        "Queries": [f"{one.queries:,}" for one in found],
        "Finished": [f"{one.finished_queries:,}" for one in found],
        "Documents": [f"{one.documents:,}" for one in found],
        "Failed arrivals": [f"{one.failed_arrivals:,}" for one in found],
        "Tokens counted by": [one.tokens_of for one in found],
        "Update: tokens that were there before": [share(o.reuse.update_documents) for o in found],
        "Update: tokens a prefix cache keeps": [share(o.reuse.update_prefix) for o in found],
        "Prefilled in vain when streaming": [share(o.reuse.wasted_prefill) for o in found],
        "Duplicate documents": [share(one.reuse.duplicate_documents) for one in found],
        "Text in repeated lines": [share(one.reuse.repeated_lines) for one in found],
        "Documents that several queries use": [share(o.reuse.shared_documents) for o in found],
        "Queries a document": [figure(one.reuse.queries_per_document) for one in found],
        "Query starts: mean rate, 1/s": [figure(one.burstiness.mean_qps) for one in found],
        "Query starts: most in one second": [figure(one.burstiness.peak_qps) for one in found],
        "Query starts: CV of gaps": [figure(one.burstiness.gap_cv) for one in found],
        "Query starts: burst index": [figure(one.burstiness.burst_index) for one in found],
    }
    for window in ("1s", "10s", "60s"):
        label = f"Query starts: dispersion in {window[:-1]} s"
        rows[label] = [figure(one.burstiness.dispersion[window]) for one in found]
    return [StatsRow(label, tuple(cells)) for label, cells in rows.items()]
