"""What a replay can be told."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from s2l.replayer.limits import Limits


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The options of ``s2l replay``.

    ``rate_qps`` is queries per second; None where the arrivals state their own, with ``recorded``
    ones keeping the trace's times. ``n_queries`` are requests per repeat (default: each of the
    trace once; queries are used again where it has fewer), and ``duration_s`` ends the starts.
    ``concurrency`` is a closed loop of so many, without a schedule; ``max_concurrency`` caps an
    open one. ``answer_at`` are the moments at which the question is asked, a pass for each: shares
    of the retrieval's time (``25%``) or times since the query's start (``2s``); none: at its end.

    ``context_tokens`` cuts each query's context, and ``order`` places the documents of a replaced
    one. ``timeout_s`` counts from when the context is due, ``connect_timeout_s`` from when
    something waits for the connection, ``first_token_timeout_s`` from the question.
    ``cancel_fraction`` is the share of requests whose client gives up at a moment drawn by seed.
    ``connections`` is ``reuse`` or ``new``, where the protocol leaves the choice.
    """

    rate_qps: float | None
    arrivals: str = "poisson"
    burstiness: float = 1.0
    delivery: str = "both"
    seed: int = 0
    time_scale: float = 1.0
    n_queries: int | None = None
    repeat: int = 1
    duration_s: float | None = None
    concurrency: int | None = None
    max_concurrency: int | None = None
    answer_at: tuple[str, ...] = ()
    max_tokens: int = 64
    context_tokens: int | None = None
    order: str = "score"
    warmup: int = 2
    timeout_s: float = 300.0
    connect_timeout_s: float | None = None
    first_token_timeout_s: float | None = None
    retries: int = 0
    cancel_fraction: float = 0.0
    connections: Literal["reuse", "new"] = "reuse"
    server_metrics_interval_s: float = 1.0
    slo: str | None = None
    """Limits of each request for goodput, as they were given; no part of the sending."""

    @property
    def open_ended(self) -> bool:
        """Whether only a pass's end says how many requests it has: a closed loop of some time."""
        return self.concurrency is not None and self.duration_s is not None

    def as_dict(self) -> dict[str, Any]:
        """For ``run.json``."""
        return asdict(self) | {"answer_at": list(self.answer_at), "temperature": 0.0}

    def limits(self) -> Limits:
        """The limits of each request."""
        return Limits(
            self.timeout_s, self.connect_timeout_s, self.first_token_timeout_s, self.retries
        )
