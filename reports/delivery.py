"""All metrics of one delivery of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports import metrics
from s2l.reports.answers import AnswerQuality
from s2l.reports.attainment import PER_REQUEST, UNSENT, Attainment
from s2l.reports.bootstrap import Interval, quantile_interval
from s2l.reports.percentiles import LEVELS, Distribution, samples_needed
from s2l.reports.request_scan import NO_EVENTS, TokenEvents
from s2l.reports.run_data import RunData
from s2l.reports.slo import Slo
from s2l.reports.slo_check import SloCheck, check_slos
from s2l.reports.updates import Updates
from s2l.reports.workload import Workload


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Requests of one delivery. planned = sent + unsent, sent = succeeded + failed."""

    planned: int
    sent: int
    succeeded: int
    unsent: int
    failed: dict[str, int]
    """Failures by ``error_type``, most frequent first."""

    @classmethod
    def of(cls, requests: pa.Table) -> "Outcomes":
        """Count them."""
        counted = pc.value_counts(requests["error_type"].combine_chunks()).to_pylist()
        by_type = {entry["values"]: entry["counts"] for entry in counted}
        succeeded, unsent = by_type.pop(None, 0), by_type.pop(UNSENT, 0)
        failed = dict(sorted(by_type.items(), key=lambda item: (-item[1], item[0])))
        return cls(requests.num_rows, requests.num_rows - unsent, succeeded, unsent, failed)


@dataclass(frozen=True, slots=True)
class Latencies:
    """Distributions in seconds over the successes; the lags over everything that was sent.

    ``intervals`` has the 95 % bootstrap intervals of those percentiles that the sample carries one
    for, by metric and percentile. ``itl_s`` has none: gaps of one answer are not independent.
    Those named for what was actual or for the service count from actual times.
    """

    ttft_s: Distribution
    ttft_service_s: Distribution
    ttft_user_s: Distribution
    ttft_answer_s: Distribution
    tpot_s: Distribution
    itl_s: Distribution
    e2e_s: Distribution
    e2e_user_s: Distribution
    schedule_lag_s: Distribution
    chunk_lag_s: Distribution
    ttft_user_actual_s: Distribution
    e2e_service_s: Distribution
    e2e_user_actual_s: Distribution
    tokens_per_event: float | None
    intervals: dict[str, dict[str, Interval]]

    @classmethod
    def of(
        cls, requests: pa.Table, chunks: pa.Table, events: TokenEvents, seed: int
    ) -> "Latencies":
        """Derive them from one delivery; ``seed`` is the bootstrap's."""
        done = metrics.succeeded(requests)
        values = {name: metric(done) for name, metric in PER_REQUEST.items()}
        codes = metrics.codes(done, "query_id")
        return cls(
            **{name: Distribution.of(found) for name, found in values.items()},
            itl_s=Distribution.of(events.gaps_s),
            schedule_lag_s=Distribution.of(metrics.schedule_lag_s(requests)),
            chunk_lag_s=Distribution.of(metrics.chunk_lag_s(chunks)),
            ttft_user_actual_s=Distribution.of(metrics.ttft_user_actual_s(done)),
            e2e_service_s=Distribution.of(metrics.e2e_service_s(done)),
            e2e_user_actual_s=Distribution.of(metrics.e2e_user_actual_s(done)),
            tokens_per_event=events.tokens_per_event,
            intervals={name: intervals_of(found, codes, seed) for name, found in values.items()},
        )


def intervals_of(values: metrics.Floats, codes: metrics.Codes, seed: int) -> dict[str, Interval]:
    """The interval of every percentile that is shown and that the values, of the queries in
    ``codes``, carry one for."""
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    known, codes = values[order], codes[order]
    found = {
        name: quantile_interval(known, level, seed, codes=codes)
        for name, level in LEVELS.items()
        if known.size >= samples_needed(level)
    }
    return {name: interval for name, interval in found.items() if interval is not None}


@dataclass(frozen=True, slots=True)
class Throughput:
    """Rates per second of the measured window ``completion_s``, and the successes' tokens.

    A sum is None when one success does not say its number. ``token_sources`` says who counted.
    ``event_tokens`` are the output tokens that the events speak of; where they are not the
    ``output_tokens`` of the usage by more than 2 %, ``token_mismatch`` is their relative
    difference.
    """

    completion_s: float | None
    request_rate: float | None
    output_token_rate: float | None
    total_token_rate: float | None
    prompt_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    invalidated_tokens: int | None
    discarded_tokens: int | None
    reasoning_tokens: int | None
    event_tokens: int
    token_mismatch: float | None
    prefill_hidden: Distribution
    token_sources: tuple[str, ...]

    @classmethod
    def of(cls, requests: pa.Table, events: TokenEvents) -> "Throughput":
        """Derive it from one delivery's requests."""
        done = metrics.succeeded(requests)
        sources = {name for name in done["token_source"].unique().to_pylist() if name}
        sums = {name: metrics.total(requests, name) for name in _TOKENS}
        return cls(
            completion_s=metrics.completion_s(requests),
            request_rate=metrics.request_rate(requests),
            output_token_rate=metrics.output_token_rate(requests),
            total_token_rate=metrics.total_token_rate(requests),
            **sums,
            event_tokens=events.tokens,
            token_mismatch=_mismatch(sums["output_tokens"], events.tokens),
            prefill_hidden=Distribution.of(metrics.prefill_hidden(done)),
            token_sources=tuple(sorted(sources)),
        )


_TOKENS: Final = (
    *("prompt_tokens", "output_tokens", "cached_tokens", "invalidated_tokens"),
    *("discarded_tokens", "reasoning_tokens"),
)
_MISMATCH_FROM: Final = 0.02


def _mismatch(stated: int | None, seen: int) -> float | None:
    """How much both counts of output tokens differ, from 2 % on."""
    apart = metrics.ratio(None if stated is None else abs(stated - seen), stated)
    return apart if apart is not None and apart > _MISMATCH_FROM else None


@dataclass(frozen=True, slots=True)
class DeliverySummary:
    """One delivery (``stream`` or ``wait``) of a run.

    ``slo`` holds each request to every limit; ``slo_checks`` the whole to those at a percentile.
    """

    delivery: str
    outcomes: Outcomes
    latencies: Latencies
    throughput: Throughput
    slo: Attainment | None
    slo_checks: tuple[SloCheck, ...]
    updates: Updates
    workload: Workload
    quality: AnswerQuality

    @classmethod
    def of(cls, delivery: str, data: RunData, slos: Sequence[Slo]) -> "DeliverySummary":
        """Summarise one delivery of a run."""
        rows = np.asarray(pc.equal(data.requests["delivery"], delivery).to_numpy())
        mine = data.requests.filter(pa.array(rows))
        sent = data.chunks.filter(pa.array(rows[data.chunks["owner"].to_numpy()]))
        done = rows & np.asarray(pc.is_null(data.requests["error_type"]).to_numpy())
        events = data.events.get(delivery, NO_EVENTS)
        return cls(
            delivery=delivery,
            outcomes=Outcomes.of(mine),
            latencies=Latencies.of(mine, sent, events, data.info.seed),
            throughput=Throughput.of(mine, events),
            slo=Attainment.of(mine, slos),
            slo_checks=check_slos(mine, [slo for slo in slos if slo.percentile is not None]),
            updates=Updates.of(data.requests, data.chunks, done),
            workload=Workload.of(mine, sent),
            quality=AnswerQuality.of({name: found[rows] for name, found in data.scores.items()}),
        )
