"""The points of a sweep as a table for a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich import box
from rich.table import Table
from rich.text import Text

from s2l.reports.units import Unit, number
from s2l.sweeping.record import SweepPoint

if TYPE_CHECKING:  # what it imports takes long
    from s2l.reports.sweep import RatePoint

_LEVELS: Final = ("p50", "p95", "p99")
_STYLES: Final = {"stream": "blue", "wait": "yellow"}


def sweep_table(measured: "Sequence[RatePoint]", points: Sequence[SweepPoint]) -> Table:
    """A row for each rate and delivery; ``measured`` has the figures, ``points`` the judgement."""
    judged = {point.rate_qps: point for point in points}
    unit = Unit.fitting(one.ttft_s.level(level) for one in measured for level in _LEVELS)
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    drawn.add_column("qps", justify="right", no_wrap=True)
    drawn.add_column("", no_wrap=True)
    for name in (f"TTFT p50, {unit.name}", "p95", "p99", "done/s", "failed"):
        drawn.add_column(name, justify="right", no_wrap=True)
    drawn.add_column("verdict", no_wrap=True)
    drawn.add_column("SLO", no_wrap=True)
    for one in measured:
        drawn.add_row(
            f"{one.rate_qps:g}",
            Text(one.delivery, _STYLES.get(one.delivery, "")),
            *(unit.text(one.ttft_s.level(level)) for level in _LEVELS),
            number(one.completed),
            f"{one.failed:,}",
            one.verdict,
            _met(judged.get(one.rate_qps), one.delivery),
        )
    return drawn


def _met(point: SweepPoint | None, delivery: str) -> Text:
    if point is None:
        return Text("")
    saturated = Text("saturated", "red") if delivery in point.saturated else Text("")
    if delivery not in point.meets:
        return saturated
    return Text("met", "green") if point.meets[delivery] else saturated or Text("missed", "red")
