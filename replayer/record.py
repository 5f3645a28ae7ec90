"""What happened to one request, as it is noted while it happens."""

from dataclasses import dataclass, field

from s2l.serving_adapter.base import Usage

UNSENT = "unsent"
"""The error type of a request that was planned and never started."""


@dataclass(slots=True)
class ChunkRecord:
    """One piece of context; times in µs since the run's start."""

    seq: int
    kind: str
    arrival_intended_us: int
    send_intended_us: int
    tokens: int | None
    context_tokens: int | None = None
    kept_tokens: int | None = None
    doc_ids: tuple[str, ...] = ()
    sent_us: int | None = None
    prefilled_us: int | None = None


@dataclass(slots=True)
class RequestRecord:
    """One request; times in µs since the run's start."""

    request_id: str
    query_id: str
    delivery: str
    rate: float | None
    start_intended_us: int
    context_intended_us: int
    chunks: list[ChunkRecord]
    start_us: int | None = None
    context_us: int | None = None
    end_us: int | None = None
    token_us: list[int] = field(default_factory=list)
    token_n: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    usage: Usage | None = None
    finish_reason: str | None = None
    error_type: str | None = UNSENT
    error: str | None = None

    @property
    def sent(self) -> bool:
        """Whether it was started at all."""
        return self.error_type != UNSENT

    @property
    def succeeded(self) -> bool:
        """Whether its answer is complete."""
        return self.error_type is None
