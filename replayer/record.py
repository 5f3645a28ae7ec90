"""What happened to one request, as it is noted while it happens."""

from dataclasses import dataclass, field
from typing import Final

from s2l.serving_adapter.base import Usage

UNSENT: Final = "unsent"
"""The error type of a request that was planned and never started."""
INTERRUPTED: Final = "interrupted"
"""The error type of a request that was under way when the run was stopped."""
CANCELLED: Final = "cancelled"
"""The error type of a request that this client gave up on purpose."""
TIMEOUT: Final = "timeout"


@dataclass(frozen=True, slots=True)
class ChunkSend:
    """One piece of context as a delivery sends it; times in µs since the query's start."""

    seq: int
    kind: str
    arrival_us: int
    send_us: int
    tokens: int | None = None
    context_tokens: int | None = None
    kept_tokens: int | None = None
    doc_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuerySend:
    """One query as a delivery sends it; all its requests share it.

    ``chunks`` are in the order of their times, none later than ``due_us``, when the question is
    asked (µs since the query's start).
    """

    query_id: str
    due_us: int
    chunks: tuple[ChunkSend, ...] = ()


@dataclass(slots=True)
class RequestRecord:
    """One request; times in µs since the run's start, None where something never happened.

    ``eligible_us`` is when it could start at the earliest: its intended start, or when a request
    before it ended, where the number under way is limited. ``handed_us``, ``sent_us`` and
    ``prefilled_us`` have an entry for each chunk: when it was given to its connection, when it
    went out there, and when the server held it; ``ask_us`` and ``context_us`` are the first two of
    the question.
    """

    request_id: str
    query: QuerySend
    delivery: str
    number: int
    start_intended_us: int
    rate: float | None = None
    repeat: int = 0
    answer_at: str | None = None
    worker: int | None = None
    eligible_us: int = 0
    start_us: int | None = None
    ask_us: int | None = None
    context_us: int | None = None
    first_answer_us: int | None = None
    end_us: int | None = None
    handed_us: list[int | None] = field(default_factory=list)
    sent_us: list[int | None] = field(default_factory=list)
    prefilled_us: list[int | None] = field(default_factory=list)
    token_us: list[int] = field(default_factory=list)
    token_n: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    usage: Usage | None = None
    finish_reason: str | None = None
    error_type: str | None = UNSENT
    error: str | None = None
    resends: int = 0
    """How often its connection was found closed, and it was sent again unasked."""
    attempt_us: list[int] | None = None
    attempt_errors: list[str] | None = None

    @property
    def context_intended_us(self) -> int:
        """When the question is to be asked."""
        return self.start_intended_us + self.query.due_us

    @property
    def sent(self) -> bool:
        """Whether it was started at all."""
        return self.error_type != UNSENT

    @property
    def succeeded(self) -> bool:
        """Whether its answer is complete."""
        return self.error_type is None
