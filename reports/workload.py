"""What was asked of the server: how context arrived, and how much of it."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from s2l.reports import metrics
from s2l.reports.percentiles import Distribution


@dataclass(frozen=True, slots=True)
class Workload:
    """One delivery's planned requests, failed ones too; tokens where the run knows them.

    ``arrival_gap_s`` lies between neighbouring chunks of a query, ``retrieval_s`` between a query's
    start and its context being due, ``start_gap_s`` between the intended starts of queries.
    """

    chunks_per_query: Distribution
    arrival_gap_s: Distribution
    retrieval_s: Distribution
    start_gap_s: Distribution
    chunk_tokens: Distribution
    prompt_tokens: Distribution
    output_tokens: Distribution

    @classmethod
    def of(cls, requests: pa.Table, chunks: pa.Table) -> "Workload":
        """Characterise one delivery's requests, ``chunks`` being theirs."""
        per_query = np.bincount(metrics.owners(chunks)) if chunks.num_rows else np.empty(0)
        sent = per_query[per_query > 0].astype(np.float64)
        without = np.zeros(requests.num_rows - sent.size)
        starts = np.sort(metrics.column(requests, "start_intended_us")) / metrics.US_PER_S
        return cls(
            chunks_per_query=Distribution.of(np.r_[sent, without]),
            arrival_gap_s=Distribution.of(metrics.arrival_gaps_s(chunks)),
            retrieval_s=Distribution.of(metrics.retrieval_s(requests)),
            start_gap_s=Distribution.of(np.diff(starts)),
            chunk_tokens=Distribution.of(metrics.column(chunks, "tokens")),
            prompt_tokens=Distribution.of(metrics.column(requests, "prompt_tokens")),
            output_tokens=Distribution.of(metrics.column(requests, "output_tokens")),
        )
