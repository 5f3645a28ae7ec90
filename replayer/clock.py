"""The one clock of a run, and waiting by it."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """A monotonic clock and a way to sleep by it; a fake one makes an hour pass in a blink."""

    def now_ns(self) -> int:
        """Nanoseconds since some fixed moment."""

    async def sleep_until_ns(self, deadline_ns: int) -> None:
        """Return once ``now_ns()`` has reached the deadline; at once when it has already."""


class MonotonicClock:
    """The system's monotonic clock and the event loop's timers."""

    def now_ns(self) -> int:
        """``time.perf_counter_ns``."""
        return time.perf_counter_ns()

    async def sleep_until_ns(self, deadline_ns: int) -> None:
        """Sleep by the loop's timer, again if it fired early."""
        while (left_ns := deadline_ns - self.now_ns()) > 0:
            await asyncio.sleep(left_ns / 1e9)
