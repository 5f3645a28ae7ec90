"""A moment of a replay in words and in a table."""

from collections.abc import Mapping, Sequence
from typing import Final

from rich import box
from rich.console import Console, Group
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from s2l.replaying.live_pass import PassMoment
from s2l.reports.units import NOT_KNOWN, duration, number

_BAR: Final = 20
_WIDE: Final = 1000
"""Columns that any table fits into."""
_STYLES: Final = {"stream": "blue", "wait": "yellow"}


def line(at: PassMoment) -> str:
    """A pass in one line."""
    of = "" if at.planned is None else f"/{at.planned}"
    parts = [f"{at.name}: {at.ended}{of}"]
    if at.achieved_qps is not None:
        offered = "" if at.offered_qps is None else f" of {number(at.offered_qps)} offered"
        parts.append(f"{number(at.achieved_qps)}{offered} requests/s")
    if at.over:
        parts.append(f"in {duration(at.elapsed_s)}")
    else:
        parts.append(f"{at.in_flight} in flight")
    if at.ttft_p50_s is not None:
        p95 = "" if at.ttft_p95_s is None else f", p95 {duration(at.ttft_p95_s)}"
        parts.append(f"TTFT p50 {duration(at.ttft_p50_s)}{p95}")
    if at.lag_p99_s is not None:
        parts.append(f"lag p99 {duration(at.lag_p99_s)}")
    if at.failed:
        parts.append(f"{sum(at.failed.values())} failed ({failures(at.failed)})")
    if at.left_s is not None:
        parts.append(f"{clock_time(at.left_s)} left")
    return " · ".join(parts)


def picture(passes: Sequence[PassMoment], console: Console) -> Table | Group:
    """The table where the terminal is as wide as that, else a line for each pass."""
    drawn = table(passes)
    if Measurement.get(console, console.options.update(max_width=_WIDE), drawn).maximum <= (
        console.width
    ):
        return drawn
    return Group(*(Text(line(at)) for at in passes))


def table(passes: Sequence[PassMoment]) -> Table:
    """All passes so far, one below the other."""
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    drawn.add_column("delivery")
    drawn.add_column("requests")
    for name in ("offered/s", "done/s", "in flight", "TTFT p50", "p95", "lag p99", "failed"):
        drawn.add_column(name, justify="right", no_wrap=True)
    drawn.add_column("left", justify="right", no_wrap=True)
    for at in passes:
        drawn.add_row(*_cells(at))
    return drawn


def _cells(at: PassMoment) -> list[str | Text]:
    times = (at.ttft_p50_s, at.ttft_p95_s, at.lag_p99_s)
    return [
        Text(at.name, _STYLES.get(at.name.partition("@")[0], "")),
        _progress(at),
        *("" if rate is None else number(rate) for rate in (at.offered_qps, at.achieved_qps)),
        "" if at.over else f"{at.in_flight:,}",
        *map(duration, times),
        Text(failures(at.failed), "red") if at.failed else "0",
        f"in {duration(at.elapsed_s)}" if at.over else clock_time(at.left_s),
    ]


def _progress(at: PassMoment) -> Text:
    if at.planned is None:
        return Text(f"{at.ended:,}")
    done = _BAR * at.ended // max(1, at.planned)
    return Text.assemble(
        ("━" * done, "green"), ("━" * (_BAR - done), "dim"), f" {at.ended:,}/{at.planned:,}"
    )


def failures(failed: Mapping[str, int]) -> str:
    """``timeout 3, rejected 1``: the most frequent first."""
    ranked = sorted(failed.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {n:,}" for name, n in ranked)


def clock_time(seconds: float | None) -> str:
    """``8 s``, ``2:05``, ``1:02:05``."""
    if seconds is None:
        return NOT_KNOWN
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"
