"""A moment of a pass as it is shown, made of what the replayer says of itself."""

import math
from collections import deque
from dataclasses import dataclass
from typing import Final

from s2l.replayer.progress import Progress
from s2l.reports.percentiles import samples_needed

WINDOW_S: Final = 10.0
"""Rates are those of so many last seconds."""


@dataclass(frozen=True, slots=True)
class PassMoment:
    """One moment of a pass. ``offered_qps`` and ``achieved_qps`` are requests that were to start
    and that ended, a second, over the last ``WINDOW_S``; what is not known yet is None."""

    name: str
    planned: int | None
    ended: int
    in_flight: int
    failed: dict[str, int]
    elapsed_s: float
    offered_qps: float | None
    achieved_qps: float | None
    ttft_p50_s: float | None
    ttft_p95_s: float | None
    lag_p99_s: float | None
    left_s: float | None
    over: bool = False


class RecentRates:
    """What was counted over the last seconds of one pass."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int, int]] = deque([(0.0, 0, 0)])

    def of(self, elapsed_s: float, offered: int, ended: int) -> tuple[float, float] | None:
        """Offered and ended, a second; None before any time has passed."""
        marks = self._marks
        while len(marks) > 1 and marks[1][0] <= elapsed_s - WINDOW_S:
            marks.popleft()
        then_s, offered_then, ended_then = marks[0]
        if elapsed_s > marks[-1][0]:
            marks.append((elapsed_s, offered, ended))
        if elapsed_s <= then_s:
            return None
        span_s = elapsed_s - then_s
        return (offered - offered_then) / span_s, (ended - ended_then) / span_s


def moment(at: Progress, rates: RecentRates) -> PassMoment:
    """The pass that is under way; ``rates`` are those of this pass alone."""
    ended = at.succeeded + sum(at.failed.values())
    found = rates.of(at.elapsed_s, at.due, ended)
    offered_qps, achieved_qps = found or (None, None)
    p50_s, p95_s = at.ttft_s.get(at.pass_name, (math.nan, math.nan))
    return PassMoment(
        name=at.pass_name,
        planned=at.planned,
        ended=ended,
        in_flight=at.in_flight,
        failed=dict(at.failed),
        elapsed_s=at.elapsed_s,
        offered_qps=None if at.eta_s is None else offered_qps,  # a closed loop offers nothing
        achieved_qps=achieved_qps,
        ttft_p50_s=_carried(p50_s, 50, at.succeeded),
        ttft_p95_s=_carried(p95_s, 95, at.succeeded),
        lag_p99_s=_carried(at.lag_p99_s, 99, ended),
        left_s=_left_s(at, ended),
    )


def _carried(value: float, level: float, samples: int) -> float | None:
    """A percentile, where there are enough samples for it."""
    return None if math.isnan(value) or samples < samples_needed(level) else value


def _left_s(at: Progress, ended: int) -> float | None:
    """Until the last start; without a schedule, or beyond it, at the pace so far."""
    if at.eta_s:
        return at.eta_s
    if at.planned is None or not ended:
        return None
    return at.elapsed_s / ended * (at.planned - ended)
