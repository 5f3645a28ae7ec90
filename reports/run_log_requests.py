"""Events of a Stream2LLM run log put together as requests, with the times of a run.

The log has durations and the moments at which they were noted; a run has times. A request's context
is due at the moment its ``query_ttft`` was noted less that duration, so that ``ttft_s`` and
``e2e_s`` are the log's own figures. Its start is the moment of its ``query_start``: the actual one,
as the log knows no intended ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from s2l.replayer.run import REQUEST_SCHEMA
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.stream2llm_runs import E2E, TTFT, RunEvent, read_run_log

START: Final = "query_start"


@dataclass(slots=True)
class LoggedRequest:
    """One request of the log, as its events tell of it."""

    query_id: str
    delivery: str
    rate: float | None
    start_us: int | None = None
    noted_us: int | None = None
    ttft_us: int | None = None
    e2e_us: int | None = None

    def note(self, event: RunEvent) -> None:
        """Take in one event."""
        if event.event_type == START:
            self.start_us = event.timestamp_us
        elif event.event_type == TTFT:
            self.noted_us, self.ttft_us = event.timestamp_us, event.duration_us
        elif event.event_type == E2E:
            self.e2e_us = event.duration_us

    def due_us(self) -> int | None:
        """When its context was due, on the log's clock."""
        if self.noted_us is not None and self.ttft_us is not None:
            return self.noted_us - self.ttft_us
        return self.start_us


def logged_requests(file: Path, log: ImportLog, delivery: str | None) -> list[LoggedRequest]:
    """Events put together by request; a second start or first token begins another request."""
    found: dict[tuple[object, ...], list[LoggedRequest]] = {}
    for event in read_run_log(file, log):
        if event.event_type not in (START, TTFT, E2E):
            continue
        side = delivery if event.stream is None else "stream" if event.stream else "wait"
        if side is None:
            log.warn("rows that do not say whether they streamed (--delivery says it)")
            continue
        rate = _rate(event.replay_rate)
        known = found.setdefault(
            (event.query_id, event.request_id, side, rate, event.concurrency), []
        )
        if not known or _is_another(known[-1], event):
            known.append(LoggedRequest(event.query_id, side, rate))
        known[-1].note(event)
    every = [one for known in found.values() for one in known]
    placed = [one for one in every if one.due_us() is not None]
    if len(placed) < len(every):
        log.warn(f"requests with neither a {START} nor a {TTFT}", len(every) - len(placed))
    return placed


def _is_another(one: LoggedRequest, event: RunEvent) -> bool:
    if event.event_type == START:
        return True
    return (one.ttft_us if event.event_type == TTFT else one.e2e_us) is not None


def _rate(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def request_table(requests: Sequence[LoggedRequest]) -> pa.Table:
    """Rows in the order of their dues, times since the earliest one."""
    ordered = sorted(requests, key=lambda one: (one.due_us() or 0, one.query_id))
    moments = [at for one in ordered for at in (one.start_us, one.due_us()) if at is not None]
    zero = min(moments)
    return pa.Table.from_pylist(
        [_row(number, one, zero) for number, one in enumerate(ordered)], REQUEST_SCHEMA
    )


def _row(number: int, one: LoggedRequest, zero: int) -> dict[str, Any]:
    due = (one.due_us() or 0) - zero
    start = due if one.start_us is None else one.start_us - zero
    first = None if one.ttft_us is None else due + one.ttft_us
    last = None if one.e2e_us is None or first is None else due + one.e2e_us
    failed = first is None
    return {
        "request_id": f"{one.delivery}-{number}",
        "query_id": one.query_id,
        "delivery": one.delivery,
        "rate": one.rate,
        "start_intended_us": start,
        "start_us": start,
        "context_intended_us": due,
        "context_us": due,
        "first_token_us": first,
        "last_token_us": last,
        "end_us": first if last is None else max(last, first or 0),
        "token_us": [],
        "token_n": [],
        "output_text": "",
        "error_type": "not_logged" if failed else None,
        "error": f"the log has no {TTFT} of it" if failed else None,
    }
