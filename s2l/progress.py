"""Progress on standard error: bars on a terminal, plain lines elsewhere."""

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

PLAIN_PERIOD_S: Final = 5.0
_PERCENT: Final = 100


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Nobody reads on: the work goes on in silence. (By default the program would end.)"""
        self.file = open(os.devnull, "w")  # noqa: SIM115 (as long as the program)


console = _Console(stderr=True)


class Bar(Protocol):
    """Something that shows how far a piece of work is."""

    def advance(self, note: str = "") -> None:
        """One more is done."""


def say(text: str) -> None:
    """One line about what is being done."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def rich_progress() -> Progress:
    """The bars of all commands, for a terminal; each task has a field ``note``."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        refresh_per_second=4,  # drawing costs time on the machine that measures
    )


@contextmanager
def bar(what: str, total: int) -> Iterator[Bar]:
    """Show work of ``total`` pieces."""
    if not console.is_terminal:
        yield _PlainBar(what, total)
        return
    with rich_progress() as progress:
        task = progress.add_task(what, total=total, note="")
        yield _RichBar(progress, task)


@contextmanager
def percent_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show bytes as they go by: tell it how many are done, and of how many."""
    with bar(f"{what}, %", _PERCENT) as shown:
        steps = 0

        def tell(done: int, total: int) -> None:
            nonlocal steps
            reached = min(_PERCENT, _PERCENT * done // max(1, total))
            while steps < reached:
                steps += 1
                shown.advance()

        yield tell


class _RichBar:
    def __init__(self, progress: Progress, task: object) -> None:
        self._progress = progress
        self._task = task

    def advance(self, note: str = "") -> None:
        self._progress.update(self._task, advance=1, note=note)  # type: ignore[arg-type]


class _PlainBar:
    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done = what, total, 0
        self._said_s = -math.inf

    def advance(self, note: str = "") -> None:
        self._done += 1
        now_s = time.monotonic()
        if self._done == self._total or now_s - self._said_s > PLAIN_PERIOD_S:
            self._said_s = now_s
            say(f"{self._what}: {self._done}/{self._total}  {note}".rstrip())
