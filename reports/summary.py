"""Everything a run's report says in numbers, derived from its raw times."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import pyarrow as pa

from s2l.replayer.run import Run, RunInfo
from s2l.reports.answers import Parity, References
from s2l.reports.curve import CurvePoint, quality_curve
from s2l.reports.delivery import DeliverySummary
from s2l.reports.gain import StreamingGain
from s2l.reports.pairs import Pairs
from s2l.reports.phase_summary import PhaseSummary, phase_summaries
from s2l.reports.run_data import RunData
from s2l.reports.slo import Slo, SloError, parse_slos

SUMMARY_FORMAT: Final = "s2l-summary/1"

DELIVERIES: Final = ("stream", "wait")
"""In the order in which reports show them."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The metrics of a run beside what the run says of itself.

    ``deliveries`` holds those that were replayed. ``gain`` and ``parity`` are None unless both
    were. Where queries were asked at several moments of their retrieval, all of these are of the
    requests asked at its end, and ``curve`` has a point for each moment. Where none waited for the
    end they are of the latest moment, which ``asked_at`` names. ``phases`` are empty unless the run
    offered several rates.
    """

    format: str
    info: RunInfo
    deliveries: tuple[DeliverySummary, ...]
    gain: StreamingGain | None
    parity: Parity | None
    curve: tuple[CurvePoint, ...] = ()
    phases: tuple[PhaseSummary, ...] = ()
    asked_at: str | None = None

    def delivery(self, name: str) -> DeliverySummary | None:
        """The delivery of that name, or None when the run has none."""
        return next((one for one in self.deliveries if one.delivery == name), None)


def summarize(run: Run, slos: Sequence[Slo] | None = None) -> Summary:
    """Read a run's tables and derive its metrics.

    Args:
        run: to read.
        slos: for goodput and attainment; None: those that the run's own options state.

    Raises:
        RunError: a table is missing or damaged.
    """
    return summarize_data(RunData.read(run), slos)


def summarize_data(
    data: RunData, slos: Sequence[Slo] | None = None, pairs: Pairs | None = None
) -> Summary:
    """Derive a run's metrics from its tables; touches neither disk nor network.

    ``pairs`` are those of the final requests, for a caller that has them already.
    """
    held_to = stated_slos(data.info) if slos is None else slos
    final = data.of_final()
    present = set(data.requests["delivery"].unique().to_pylist())
    names = tuple(name for name in DELIVERIES if name in present)
    deliveries = tuple(DeliverySummary.of(name, final, held_to) for name in names)
    phases = phase_summaries(final, names, held_to)
    more = quality_curve(data, names), phases, data.moment
    if len(deliveries) < len(DELIVERIES):
        return Summary(SUMMARY_FORMAT, data.info, deliveries, None, None, *more)
    pairs = pairs or Pairs.of(final.requests)
    gain = StreamingGain.of(pairs, data.info.seed)
    parity = Parity.of(pairs, data.info.options, final.texts)
    return Summary(SUMMARY_FORMAT, data.info, deliveries, gain, parity, *more)


def stated_slos(info: RunInfo) -> tuple[Slo, ...]:
    """The objectives that a run was replayed with; none where it states none that can be read."""
    stated = info.options.get("slo")
    try:
        return parse_slos(stated) if isinstance(stated, str) and stated else ()
    except SloError:
        return ()


def references_of(queries: pa.Table) -> References:
    """Reference answers by ``query_id``."""
    columns = (queries[name].to_pylist() for name in ("query_id", "answers"))
    return {query_id: answers or () for query_id, answers in zip(*columns, strict=True)}


def summary_json(summary: Summary) -> bytes:
    """The summary as one JSON object; seconds as numbers, unknown as null."""
    return msgspec.json.encode(summary)
