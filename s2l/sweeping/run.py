"""Replays the points of a sweep one after another, and writes down each as it ends."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import msgspec

from s2l.progress import say
from s2l.replayer.run import RunInfo
from s2l.replaying.run import cut_short
from s2l.sweeping.judging import judge_point
from s2l.sweeping.plan import SweepPlan
from s2l.sweeping.record import Sweep, SweepPoint, run_folder, write_sweep

LATE: Final = "schedule_lag_s"
"""The check that fails where the client was too busy, or the machine was."""

ReplayPoint = Callable[[float, int, Path], Awaitable[RunInfo]]
"""Replays so many requests at a rate into a run folder."""


async def sweep_on(
    folder: Path, sweep: Sweep, plan: SweepPlan, replay: ReplayPoint
) -> tuple[Sweep, str | None]:
    """Replay what is left of a sweep. The sweep as it is then, and what cut it short: ``None``
    where it has ended, or a person ended it.

    Raises:
        what replaying raises; the points before it are written.
    """
    sweep = _noted(sweep, plan)
    while (rate := plan.next_rate(sweep.points)) is not None:
        path, info = await _replayed(folder, rate, plan.requests(rate), replay)
        if late(info) and not info.interrupted:
            say("the client was late, which says nothing of the server: once more")
            path, info = await _replayed(folder, rate, plan.requests(rate), replay)
        if info.interrupted:
            write_sweep(folder, sweep)
            return sweep, cut_short(info)
        point = judge_point(path, rate, plan.deliveries, plan.slos)
        say(describe(point))
        sweep = _noted(msgspec.structs.replace(sweep, points=[*sweep.points, point]), plan)
        write_sweep(folder, sweep)
    return sweep, None


async def _replayed(
    folder: Path, rate: float, requests: int, replay: ReplayPoint
) -> tuple[Path, RunInfo]:
    path = run_folder(folder, rate)
    say(f"\n{rate:g} requests/s: {requests} requests in each pass, into {path}")
    return path, await replay(rate, requests, path)


def late(info: RunInfo) -> bool:
    """Whether a run is not valid because this client did not keep to its schedule."""
    return any(f.check == LATE and f.severity == "invalid" for f in info.validity.findings)


def _noted(sweep: Sweep, plan: SweepPlan) -> Sweep:
    return msgspec.structs.replace(
        sweep,
        ended=plan.ended(sweep.points),
        highest_qps=plan.highest_qps(sweep.points),
    )


def describe(point: SweepPoint) -> str:
    """A point in a line for each delivery."""
    lines = [f"{point.rate_qps:g} requests/s: {point.verdict}"]
    if point.saturated:
        lines[0] += f", saturated: {', '.join(point.saturated)}"
    for delivery, met in point.meets.items():
        lines.append(f"  {delivery}: {'met' if met else 'not met'}: {point.why[delivery]}")
    return "\n".join(lines)
