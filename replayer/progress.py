"""How a run goes on, as a live view shows it; made when it is asked for, never by the sender."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from s2l.replayer.ledger import Ledger
from s2l.replayer.pacer import Pacer
from s2l.replayer.sender import Sender
from s2l.replayer.tally import PassTally

RECENT: Final = 5000
"""Percentiles of a live view are those of so many latest requests of a pass."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A moment of a run. ``planned`` is None where only a pass's end says how many requests it has.
    ``due`` requests of the pass were to be started by now. ``ttft_s`` are (p50, p95) by pass, NaN
    where there is none yet."""

    stage: str
    pass_name: str
    elapsed_s: float
    planned: int | None
    in_flight: int
    succeeded: int
    failed: dict[str, int] = field(default_factory=dict)
    due: int = 0
    lag_p99_s: float = float("nan")
    ttft_s: dict[str, tuple[float, float]] = field(default_factory=dict)
    eta_s: float | None = None


def ttft_so_far_s(tallies: list[PassTally]) -> dict[str, tuple[float, float]]:
    """Median and 95th percentile of each pass's latest requests."""
    found = {}
    for tally in tallies:
        recent = np.array(tally.ttft_us[-RECENT:], dtype=np.float64) / 1e6
        p50, p95 = np.percentile(recent, (50, 95)) if recent.size else (np.nan, np.nan)
        found[tally.name] = (float(p50), float(p95))
    return found


def lag_so_far_s(tally: PassTally) -> float:
    """The 99th percentile of the schedule lag of a pass's latest requests."""
    recent = np.array(tally.start_lag_us[-RECENT:], dtype=np.float64) / 1e6
    return float(np.percentile(recent, 99)) if recent.size else float("nan")


def progress_of(
    stage: str,
    pacer: Pacer | None,
    ledger: Ledger | None,
    current: Sender | None,
    *,
    open_ended: bool,
) -> Progress:
    """A moment of a run; any of its parts may not be there yet. ``open_ended``: its passes end
    after some time, and not after so many requests."""
    if ledger is None or current is None or pacer is None:
        return Progress(stage, "", 0.0, 0, 0, 0)
    tally, starts_us = ledger.of(current.todo), current.todo.starts_us
    elapsed_us = max(0, pacer.now_us() - current.start_us)
    due = current.started if current.closed_loop else int(np.searchsorted(starts_us, elapsed_us))
    last_us = int(starts_us[-1]) if len(starts_us) else 0
    return Progress(
        stage=stage,
        pass_name=current.todo.name,
        elapsed_s=elapsed_us / 1e6,
        planned=None if open_ended else tally.planned,
        in_flight=current.in_flight,
        succeeded=tally.succeeded,
        failed=dict(tally.failed),
        due=due,
        lag_p99_s=lag_so_far_s(tally),
        ttft_s=ttft_so_far_s(list(ledger.tallies.values())),
        eta_s=None if current.closed_loop else max(0, last_us - elapsed_us) / 1e6,
    )
