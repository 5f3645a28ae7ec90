"""One request under way: sends what is due, notes the time of all that comes back."""

from collections.abc import Callable
from typing import Protocol

from s2l.replayer.limits import RETRIED, Limits
from s2l.replayer.record import CANCELLED, INTERRUPTED, TIMEOUT, RequestRecord
from s2l.serving_adapter.base import (
    MOST_TOKENS,
    PreparedRequest,
    ServingError,
    Session,
    Usage,
)


class Tower(Protocol):
    """Who flies it."""

    limits: Limits
    now_us: Callable[[], int]

    def on_watch(self, flight: "Flight") -> None:
        """Its next timeout has changed."""

    def on_due(self, flight: "Flight", time_us: int) -> None:
        """It is to be advanced at that time."""

    def on_ended(self, flight: "Flight") -> None:
        """Its record is complete."""


class Flight:
    """The listener of one request."""

    __slots__ = (
        "_attempts",
        "_cancel_us",
        "_connected",
        "_failures",
        "_next",
        "_now_us",
        "_prepared",
        "_retry_us",
        "_salt",
        "_session",
        "_tower",
        "_waiting_us",
        "due_us",
        "record",
        "tick",
    )

    def __init__(
        self,
        record: RequestRecord,
        prepared: PreparedRequest,
        tower: Tower,
        *,
        salt: str,
        cancel_us: int | None = None,
    ) -> None:
        """``cancel_us`` is when the client gives up, in the run's time."""
        self.record = record
        self.tick: int | None = None
        self.due_us: int | None = None  # when it is to be advanced next
        self._prepared = prepared
        self._tower = tower
        self._now_us = tower.now_us
        self._salt = salt
        self._cancel_us = cancel_us
        self._session: Session | None = None
        self._next = 0
        self._retry_us: int | None = None  # when it is to be started again
        self._attempts = 0
        self._failures = 0
        self._connected = False
        self._waiting_us: int | None = None  # since when a piece waits for the connection

    @property
    def ended(self) -> bool:
        """Whether the record is complete."""
        return self.record.end_us is not None

    def begin(self) -> None:
        """Start the request, or start it again; pieces sent before are sent anew."""
        record = self.record
        chunks = len(record.query.chunks)
        record.handed_us = [None] * chunks
        record.sent_us = [None] * chunks
        record.prefilled_us = [None] * chunks
        now_us = self._now_us()
        if record.start_us is None:
            record.start_us = now_us
            record.error_type = INTERRUPTED
        self._attempts += 1
        self._retry_us = None
        self._next = 0
        self._connected = False
        if self._attempts > 1:
            (record.attempt_us or []).append(now_us)
        session = self._prepared.start(self, salt=self._salt)
        if self.ended or self._failures >= self._attempts:  # it failed within the call
            session.close()
        else:
            self._session = session
            self._tower.on_watch(self)

    def advance(self, now_us: int) -> int | None:
        """Send all that is due; when to come back, None where nothing is left to do."""
        if self.ended:
            return None
        if self._cancel_us is not None and self._cancel_us <= now_us:
            self.abandon(CANCELLED, "the client gave up, as asked")
            return None
        if self._retry_us is not None and self._retry_us > now_us:
            return self._sooner(self._retry_us)
        if self._session is None:
            self.begin()
        return self._send_due(now_us)

    def _send_due(self, now_us: int) -> int | None:
        record = self.record
        start_us, chunks = record.start_intended_us, record.query.chunks
        while (session := self._session) is not None and self._next <= len(chunks):
            at = self._next
            is_question = at == len(chunks)
            due_us = start_us + (record.query.due_us if is_question else chunks[at].send_us)
            if due_us > now_us:
                return self._sooner(due_us)
            self._next = at + 1
            if self._waiting_us is None and not self._connected:
                self._waiting_us = now_us
            if is_question:
                record.ask_us = self._now_us()
                session.ask()
            else:
                record.handed_us[at] = self._now_us()
                session.send_chunk(at)
            self._watch_connecting(now_us)
        return None if self.ended else self._sooner(self._retry_us)

    def _sooner(self, time_us: int | None) -> int | None:
        """That time, or when the client gives up if that is before it."""
        return self._cancel_us if time_us is None else self._by(time_us)

    def _by(self, time_us: int) -> int:
        return time_us if self._cancel_us is None else min(time_us, self._cancel_us)

    def _watch_connecting(self, now_us: int) -> None:
        """A piece that waits since now has a timeout from now on."""
        limited = self._tower.limits.connect_timeout_s is not None
        if limited and self._waiting_us == now_us and not self.ended:
            self._tower.on_watch(self)

    def deadline_us(self) -> tuple[int, str]:
        """The next timeout, and what to say of it."""
        record, limits = self.record, self._tower.limits
        from_us = max(record.context_intended_us, record.start_us or 0)
        what = f"no complete answer {limits.timeout_s:g} s after the context was due"
        deadlines = [(from_us + round(limits.timeout_s * 1e6), what)]
        if (limit_s := limits.connect_timeout_s) is not None and self._waiting_us is not None:
            what = f"not connected {limit_s:g} s after something was to be sent"
            deadlines.append((self._waiting_us + round(limit_s * 1e6), what))
        limit_s = limits.first_token_timeout_s
        if limit_s is not None and record.context_us is not None and not record.token_us:
            what = f"no token {limit_s:g} s after the question was sent"
            deadlines.append((record.context_us + round(limit_s * 1e6), what))
        return min(deadlines)

    def check(self, now_us: int) -> bool:
        """Give up where a timeout has passed; whether it goes on."""
        deadline_us, what = self.deadline_us()
        if now_us < deadline_us:
            return True
        kind = "connect_timeout" if what.startswith("not connected") else TIMEOUT
        self.abandon(kind, what)
        return False

    def abandon(self, error_type: str, what: str | None = None) -> None:
        """End it from this side."""
        self._end(error_type, what)

    def on_sent(self, index: int) -> None:
        self.record.sent_us[index] = self._now_us()
        self._connected, self._waiting_us = True, None

    def on_asked(self) -> None:
        self.record.context_us = self._now_us()
        self._connected, self._waiting_us = True, None
        if self._tower.limits.first_token_timeout_s is not None:
            self._tower.on_watch(self)

    def on_prefilled(self, index: int, tokens: int) -> None:
        self.record.prefilled_us[index] = self._now_us()

    def on_text(self, text: str, tokens: int | None, *, reasoning: bool = False) -> None:
        record = self.record
        now_us = self._now_us()
        record.token_us.append(now_us)
        known = tokens is not None and 0 <= tokens <= MOST_TOKENS
        record.token_n.append(tokens if known else 1)  # type: ignore[arg-type]
        if not reasoning:
            record.texts.append(text)
            if record.first_answer_us is None:
                record.first_answer_us = now_us

    def on_resent(self, error: ServingError) -> None:
        self.record.resends += 1
        self._note_attempt(error)
        (self.record.attempt_us or []).append(self._now_us())

    def on_finished(self, usage: Usage, finish_reason: str) -> None:
        record = self.record
        record.usage, record.finish_reason = usage.plausible(), finish_reason
        self._end(None, None)

    def on_failed(self, error: ServingError) -> None:
        limits = self._tower.limits
        self._failures += 1
        again = error.error_type in RETRIED and not self.record.token_us
        if again and self._attempts <= limits.retries and not self.ended:
            self._note_attempt(error)
            self._session = self._waiting_us = self.record.context_us = None
            wait_s = limits.backoff_s(self._attempts, error.retry_after_s)
            self._retry_us = self._now_us() + round(wait_s * 1e6)
            self._tower.on_due(self, self._by(self._retry_us))
            return
        self._end(error.error_type, str(error))

    def _note_attempt(self, error: ServingError) -> None:
        record = self.record
        if record.attempt_us is None or record.attempt_errors is None:
            record.attempt_us, record.attempt_errors = [record.start_us or 0], []
        record.attempt_errors.append(f"{error.error_type}: {error}")

    def _end(self, error_type: str | None, error: str | None) -> None:
        record = self.record
        if record.end_us is not None:
            return
        record.end_us = self._now_us()
        record.error_type, record.error = error_type, error
        session, self._session = self._session, None  # the two held each other
        if session is not None:
            session.close()
        self._tower.on_ended(self)
