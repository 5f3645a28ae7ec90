"""All metrics of one delivery of a run."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports import metrics
from s2l.reports.answers import AnswerQuality, References
from s2l.reports.percentiles import Distribution
from s2l.reports.updates import Updates

UNSENT = "unsent"


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
    """Distributions in seconds over the successes; the lags over everything that was sent."""

    ttft_s: Distribution
    ttft_service_s: Distribution
    ttft_user_s: Distribution
    tpot_s: Distribution
    itl_s: Distribution
    e2e_s: Distribution
    e2e_user_s: Distribution
    schedule_lag_s: Distribution
    chunk_lag_s: Distribution
    tokens_per_event: float | None

    @classmethod
    def of(cls, requests: pa.Table, chunks: pa.Table) -> "Latencies":
        """Derive them from one delivery's requests and chunks."""
        done = metrics.succeeded(requests)
        return cls(
            ttft_s=Distribution.of(metrics.ttft_s(done)),
            ttft_service_s=Distribution.of(metrics.ttft_service_s(done)),
            ttft_user_s=Distribution.of(metrics.ttft_user_s(done)),
            tpot_s=Distribution.of(metrics.tpot_s(done)),
            itl_s=Distribution.of(metrics.itl_s(done)),
            e2e_s=Distribution.of(metrics.e2e_s(done)),
            e2e_user_s=Distribution.of(metrics.e2e_user_s(done)),
            schedule_lag_s=Distribution.of(metrics.schedule_lag_s(requests)),
            chunk_lag_s=Distribution.of(metrics.chunk_lag_s(chunks)),
            tokens_per_event=metrics.tokens_per_event(done),
        )


@dataclass(frozen=True, slots=True)
class Throughput:
    """Rates per second of the measured window ``completion_s``, and the successes' tokens.

    A sum is None when one success does not say its number. ``token_sources`` says who counted.
    """

    completion_s: float | None
    request_rate: float | None
    output_token_rate: float | None
    total_token_rate: float | None
    prompt_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    invalidated_tokens: int | None
    prefill_hidden: Distribution
    token_sources: tuple[str, ...]

    @classmethod
    def of(cls, requests: pa.Table) -> "Throughput":
        """Derive it from one delivery's requests."""
        done = metrics.succeeded(requests)
        sources = {name for name in done["token_source"].unique().to_pylist() if name}
        names = ("prompt_tokens", "output_tokens", "cached_tokens", "invalidated_tokens")
        return cls(
            completion_s=metrics.completion_s(requests),
            request_rate=metrics.request_rate(requests),
            output_token_rate=metrics.output_token_rate(requests),
            total_token_rate=metrics.total_token_rate(requests),
            **{name: metrics.total(requests, name) for name in names},
            prefill_hidden=Distribution.of(metrics.prefill_hidden(done)),
            token_sources=tuple(sorted(sources)),
        )


@dataclass(frozen=True, slots=True)
class DeliverySummary:
    """One delivery (``stream`` or ``wait``) of a run."""

    delivery: str
    outcomes: Outcomes
    latencies: Latencies
    throughput: Throughput
    updates: Updates
    quality: AnswerQuality

    @classmethod
    def of(
        cls, delivery: str, requests: pa.Table, chunks: pa.Table, references: References
    ) -> "DeliverySummary":
        """Summarise one delivery out of a run's whole tables."""
        mine = requests.filter(pc.equal(requests["delivery"], delivery))
        sent = chunks.filter(pc.is_in(chunks["request_id"], mine["request_id"].combine_chunks()))
        return cls(
            delivery=delivery,
            outcomes=Outcomes.of(mine),
            latencies=Latencies.of(mine, sent),
            throughput=Throughput.of(mine),
            updates=Updates.of(mine, sent),
            quality=AnswerQuality.of(mine, references),
        )
