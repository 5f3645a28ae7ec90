"""Ctrl-C: the first ends the work in order, the second at once."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from s2l.progress import say


@contextmanager
def drained_on_interrupt(what: str) -> Iterator[asyncio.Event]:
    """An event that is set by the first Ctrl-C (or SIGTERM); the second cancels this task."""
    loop, task, stop = asyncio.get_running_loop(), asyncio.current_task(), asyncio.Event()

    def interrupted() -> None:
        if stop.is_set():
            if task is not None:
                task.cancel()
            return
        stop.set()
        say(f"stopping: {what} under way are finished first; Ctrl-C again stops at once")

    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}
    for number in signals:
        loop.add_signal_handler(number, interrupted)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
