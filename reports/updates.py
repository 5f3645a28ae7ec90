"""How context changed while it was sent, and what that cost."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports import metrics
from s2l.reports.percentiles import Distribution


@dataclass(frozen=True, slots=True)
class Updates:
    """The updates of one delivery's context, over the successes.

    ``per_query`` are the chunks sent, ``replacing_per_query`` those of them that replace the whole
    context. ``replaced`` counts the latter in all where they were not a query's first: when there
    was something to replace. ``reuse`` has a value per such update, ``invalidated_tokens`` (their
    sum is in ``Throughput``) and ``prefill_work`` one per request.
    """

    replaced: int
    per_query: Distribution
    replacing_per_query: Distribution
    reuse: Distribution
    invalidated_tokens: Distribution
    prefill_work: Distribution

    @classmethod
    def of(cls, requests: pa.Table, chunks: pa.Table) -> "Updates":
        """Derive them from one delivery's requests and chunks."""
        done = metrics.succeeded(requests)
        sent = chunks.filter(pc.is_in(chunks["request_id"], done["request_id"].combine_chunks()))
        replacing = metrics.replaces(sent)
        per_query = metrics.chunks_per_request(done, sent)
        replacing_per_query = metrics.chunks_per_request(done, sent.filter(pa.array(replacing)))
        return cls(
            replaced=int((replacing & (metrics.column(sent, "seq") > 0)).sum()),
            per_query=Distribution.of(per_query),
            replacing_per_query=Distribution.of(replacing_per_query),
            reuse=Distribution.of(metrics.reuse(sent)),
            invalidated_tokens=Distribution.of(metrics.column(done, "invalidated_tokens")),
            prefill_work=Distribution.of(metrics.prefill_work(done)),
        )

    @property
    def any(self) -> bool:
        """Whether context was replaced or prefilled in vain: else there is nothing to say."""
        return self.replaced > 0 or (self.invalidated_tokens.max or 0) > 0
