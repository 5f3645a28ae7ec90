"""How context changed while it was sent, and what that cost."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from s2l.reports import metrics
from s2l.reports.metrics import Booleans
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
    def of(cls, requests: pa.Table, chunks: pa.Table, chosen: Booleans) -> "Updates":
        """Derive them from the chosen requests and their chunks.

        Args:
            requests: of a run.
            chunks: of the same run, with the request's row as ``owner``.
            chosen: which of the requests, one delivery's successes.
        """
        done = requests.filter(pa.array(chosen))
        sent = chunks.filter(pa.array(chosen[chunks["owner"].to_numpy()]))
        owner, replacing = sent["owner"].to_numpy(), metrics.replaces(sent)
        counts = [np.bincount(part, minlength=chosen.size) for part in (owner, owner[replacing])]
        per_query, replacing_per_query = (found[chosen].astype(np.float64) for found in counts)
        later = replacing & (sent["seq"].to_numpy() > 0)
        return cls(
            replaced=int(later.sum()),
            per_query=Distribution.of(per_query),
            replacing_per_query=Distribution.of(replacing_per_query),
            reuse=Distribution.of(metrics.reuse(sent) if later.any() else np.empty(0)),
            invalidated_tokens=Distribution.of(metrics.column(done, "invalidated_tokens")),
            prefill_work=Distribution.of(metrics.prefill_work(done)),
        )

    @property
    def any(self) -> bool:
        """Whether context was replaced or prefilled in vain: else there is nothing to say."""
        return self.replaced > 0 or (self.invalidated_tokens.max or 0) > 0
