"""Everything a run's report says in numbers, derived from its raw times."""

from dataclasses import dataclass
from typing import Final

import msgspec
import pyarrow as pa

from s2l.replayer.run import Run, RunInfo
from s2l.reports.answers import Parity, References
from s2l.reports.delivery import DeliverySummary
from s2l.reports.gain import StreamingGain
from s2l.reports.pairs import Pairs

SUMMARY_FORMAT: Final = "s2l-summary/1"

DELIVERIES: Final = ("stream", "wait")
"""In the order in which reports show them."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The metrics of a run beside what the run says of itself.

    ``deliveries`` holds those that were replayed. ``gain`` and ``parity`` are None unless both
    were.
    """

    format: str
    info: RunInfo
    deliveries: tuple[DeliverySummary, ...]
    gain: StreamingGain | None
    parity: Parity | None

    def delivery(self, name: str) -> DeliverySummary | None:
        """The delivery of that name, or None when the run has none."""
        return next((one for one in self.deliveries if one.delivery == name), None)


def summarize(run: Run) -> Summary:
    """Read a run's tables and derive its metrics.

    Raises:
        RunError: a table is missing or damaged.
    """
    return summarize_tables(run.info, run.requests(), run.chunks(), run.queries())


def summarize_tables(
    info: RunInfo, requests: pa.Table, chunks: pa.Table, queries: pa.Table
) -> Summary:
    """Derive a run's metrics from its tables; touches neither disk nor network."""
    references = references_of(queries)
    present = set(requests["delivery"].unique().to_pylist())
    deliveries = tuple(
        DeliverySummary.of(name, requests, chunks, references)
        for name in DELIVERIES
        if name in present
    )
    if len(deliveries) < len(DELIVERIES):
        return Summary(SUMMARY_FORMAT, info, deliveries, None, None)
    pairs = Pairs.of(requests)
    gain, parity = StreamingGain.of(pairs, info.seed), Parity.of(pairs, info.options)
    return Summary(SUMMARY_FORMAT, info, deliveries, gain, parity)


def references_of(queries: pa.Table) -> References:
    """Reference answers by ``query_id``."""
    columns = (queries[name].to_pylist() for name in ("query_id", "answers"))
    return {query_id: answers or () for query_id, answers in zip(*columns, strict=True)}


def summary_json(summary: Summary) -> bytes:
    """The summary as one JSON object; seconds as numbers, unknown as null."""
    return msgspec.json.encode(summary)
