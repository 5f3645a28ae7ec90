"""Ctrl-C: the first ends the work in order, the second at once."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from s2l.progress import say


@contextmanager
def interrupts(first: Callable[[], None], again: Callable[[], None]) -> Iterator[None]:
    """Call ``first`` for the first Ctrl-C (or SIGTERM) in this block, ``again`` for others; both
    are called by the running event loop."""
    loop, count = asyncio.get_running_loop(), 0

    def interrupted() -> None:
        nonlocal count
        count += 1
        (first if count == 1 else again)()

    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}
    for number in signals:
        loop.add_signal_handler(number, interrupted)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


@contextmanager
def interrupt_deferred(until: str) -> Iterator[None]:
    """Let Ctrl-C wait for the end of this block, which must not be torn apart; once more does not.

    Raises:
        KeyboardInterrupt: at the end of the block, where Ctrl-C came in it.
    """
    came = False

    def note(*_: object) -> None:
        nonlocal came
        if came:
            raise KeyboardInterrupt
        came = True
        say(f"stopping as soon as {until}")

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


@contextmanager
def drained_on_interrupt(what: str) -> Iterator[asyncio.Event]:
    """An event that is set by the first Ctrl-C (or SIGTERM); the second cancels this task."""
    task, stop = asyncio.current_task(), asyncio.Event()

    def first() -> None:
        stop.set()
        say(f"stopping: {what} under way are finished first; Ctrl-C again stops at once")

    def again() -> None:
        if task is not None:
            task.cancel()

    with interrupts(first, again):
        yield stop
