"""How far a crawl is: queries, pages per second, failures by code, sites waited for, ETA."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import click
from rich.progress import TaskID

from s2l.collectors.collect import Progress
from s2l.progress import PLAIN_PERIOD_S, console, rich_progress

_DRAW_S: Final = 0.25
_MOST_LISTED: Final = 3

Waiting = Callable[[], Mapping[str, int]]
"""How many requests wait for which site."""


def describe_progress(state: Progress, elapsed_s: float, waiting: Mapping[str, int]) -> str:
    """Pages per second, failures and the sites waited for, in one short line."""
    parts = [f"{state.texts / elapsed_s:.1f} pages/s" if elapsed_s > 0 else "0 pages/s"]
    if state.failures:
        parts.append(f"{sum(state.failures.values())} failed ({_most(state.failures)})")
    if waiting:
        parts.append(f"waiting for {_most(waiting)}")
    return " · ".join(parts)


def eta_s(state: Progress, elapsed_s: float) -> float | None:
    """Seconds that the rest takes at the pace so far; None before the first query is done."""
    if state.done == 0:
        return None
    return elapsed_s / state.done * (state.total - state.done)


def _most(counts: Mapping[str, int]) -> str:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    listed = [f"{name} {n}" for name, n in ranked[:_MOST_LISTED]]
    return ", ".join(listed) + (", …" if len(ranked) > _MOST_LISTED else "")


class CrawlDisplay:
    """Shows a capture's progress, drawn no more often than is of use."""

    def __init__(self, show: Callable[[Progress, str, float], None], waiting: Waiting) -> None:
        self._show = show
        self.waiting = waiting
        self._start_s = time.monotonic()
        self._shown_s = -1e9
        self._period_s = _DRAW_S if console.is_terminal else PLAIN_PERIOD_S

    def update(self, state: Progress) -> None:
        """Take note of the state; it is drawn if the last one is old, or if this is the end."""
        now_s = time.monotonic()
        if now_s - self._shown_s < self._period_s and state.done < state.total:
            return
        self._shown_s = now_s
        elapsed_s = now_s - self._start_s
        self._show(state, describe_progress(state, elapsed_s, self.waiting()), elapsed_s)


@contextmanager
def crawl_display(total: int, waiting: Waiting) -> Iterator[CrawlDisplay]:
    """A bar on a terminal, plain lines elsewhere."""
    if not console.is_terminal:
        yield CrawlDisplay(_print_line, waiting)
        return
    with rich_progress() as progress:
        task: TaskID = progress.add_task("crawl", total=total, note="")

        def draw(state: Progress, note: str, elapsed_s: float) -> None:
            progress.update(task, completed=state.done, note=note)

        yield CrawlDisplay(draw, waiting)


def _print_line(state: Progress, note: str, elapsed_s: float) -> None:
    left_s = eta_s(state, elapsed_s)
    eta = "" if left_s is None or state.done == state.total else f" · {left_s:.0f} s left"
    click.echo(f"crawl: {state.done}/{state.total}  {note}{eta}", err=True)
