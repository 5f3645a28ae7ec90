"""What the verdict needs to know of a pass, gathered record by record in a few bytes each."""

import errno
import os
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from s2l.replayer.monitor import ClientSample
from s2l.replayer.record import CANCELLED, RequestRecord
from s2l.replayer.run import Counts

_NO_FD: Final = os.strerror(errno.EMFILE)
_MAX_LAG_US: Final = 2**31 - 1
_UNKNOWN: Final = -1


@dataclass(slots=True)
class PassTally:
    """One pass. Per request it keeps its lag, its TTFT and its prompt's tokens (20 bytes), and 4
    bytes for each piece of context; all else are sums. Times in µs."""

    name: str
    delivery: str = ""
    planned: int = 0
    left_out: int | None = None
    """Requests that were never started, counted once the run is over; None while it goes on."""
    sent: int = 0
    succeeded: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    start_lag_us: "array[int]" = field(default_factory=lambda: array("i"))
    chunk_lag_us: "array[int]" = field(default_factory=lambda: array("i"))
    ttft_us: "array[int]" = field(default_factory=lambda: array("q"))
    prompt_tokens: "array[int]" = field(default_factory=lambda: array("i"))
    """By request number; -1 where not known."""
    first_start_us: int | None = None
    last_due_us: int = 0
    last_end_us: int = 0
    fastest_us: int | None = None
    """The shortest time from context due to end."""
    warm_requests: int = 0
    warm_tokens: int = 0
    resent: int = 0
    """Requests that were sent again as their connection was found closed."""
    held_back: int = 0
    """Requests that waited for one before them to end."""
    out_of_files: int = 0

    @property
    def unsent(self) -> int:
        """Planned and never started."""
        return self.planned - self.sent if self.left_out is None else self.left_out

    @property
    def server_failures(self) -> dict[str, int]:
        """Failures that were not wanted."""
        return {kind: n for kind, n in self.failed.items() if kind != CANCELLED}

    def add(self, record: RequestRecord) -> None:
        """Count a request that was started and has ended."""
        self.sent += 1
        self.resent += record.resends > 0
        self._add_lags(record)
        if record.error_type is not None:
            self.failed[record.error_type] += 1
            self.out_of_files += _NO_FD in (record.error or "")
            return
        self.succeeded += 1
        due_us, end_us = record.context_intended_us, record.end_us or 0
        if record.token_us:
            self.ttft_us.append(record.token_us[0] - due_us)
        start_us = record.start_intended_us
        self.first_start_us = min(start_us, self.first_start_us or start_us)
        self.last_due_us = max(self.last_due_us, due_us)
        self.last_end_us = max(self.last_end_us, end_us)
        fastest_us = end_us - due_us
        self.fastest_us = min(
            fastest_us, fastest_us if self.fastest_us is None else self.fastest_us
        )
        self._add_usage(record)

    def _add_lags(self, record: RequestRecord) -> None:
        """Lag is the client's own: what waited for its turn is late by the time after that, and
        what waited for the connection, or behind what the protocol lets through first, is not."""
        if record.start_us is None:
            return  # its sender died before it told
        eligible_us = record.eligible_us or record.start_intended_us
        self.start_lag_us.append(min(record.start_us - eligible_us, _MAX_LAG_US))
        self.held_back += eligible_us > record.start_intended_us
        if record.attempt_us is not None:
            return  # what was sent again is late because an attempt failed
        begin_us = record.start_intended_us
        for chunk, handed_us in zip(record.query.chunks, record.handed_us, strict=False):
            if handed_us is not None:
                self._add_chunk_lag(handed_us, begin_us + chunk.send_us, eligible_us)
        if record.ask_us is not None:
            self._add_chunk_lag(record.ask_us, record.context_intended_us, eligible_us)

    def _add_chunk_lag(self, handed_us: int, intended_us: int, eligible_us: int) -> None:
        self.chunk_lag_us.append(min(handed_us - max(intended_us, eligible_us), _MAX_LAG_US))

    def _add_usage(self, record: RequestRecord) -> None:
        usage = record.usage
        if usage is None:
            return
        if usage.prompt_tokens is not None:
            missing = record.number + 1 - len(self.prompt_tokens)
            if missing > 0:
                self.prompt_tokens.extend([_UNKNOWN] * missing)
            self.prompt_tokens[record.number] = usage.prompt_tokens
        if record.delivery == "wait":
            found = usage.cached_tokens if usage.found_tokens is None else usage.found_tokens
            self.warm_requests += bool(found)
            self.warm_tokens += found or 0


@dataclass(slots=True)
class ClientTally:
    """The samples of one client process: how late its loop was, and its CPU while it replayed."""

    loop_lag_us: "array[int]" = field(default_factory=lambda: array("i"))
    wall_s: float = 0.0
    cpu_s: float = 0.0
    _last: ClientSample | None = None

    def add(self, sample: ClientSample) -> None:
        """Count a sample."""
        self.loop_lag_us.append(min(sample.loop_lag_us, _MAX_LAG_US))
        last, self._last = self._last, sample
        if last is not None and (last.delivery, last.answer_at) == (
            sample.delivery,
            sample.answer_at,
        ):
            self.wall_s += (sample.time_us - last.time_us) / 1e6
            self.cpu_s += sample.cpu_s - last.cpu_s

    @property
    def cpu_share(self) -> float:
        """Of a core, while passes were under way."""
        return self.cpu_s / self.wall_s if self.wall_s > 0 else 0.0


def count(tallies: Iterable[PassTally]) -> Counts:
    """Requests by how they ended."""
    tallies = list(tallies)
    failed: Counter[str] = sum((t.failed for t in tallies), Counter())
    return Counts(
        planned=sum(t.planned for t in tallies),
        sent=sum(t.sent for t in tallies),
        succeeded=sum(t.succeeded for t in tallies),
        unsent=sum(t.unsent for t in tallies),
        failed=dict(sorted(failed.items())),
    )
