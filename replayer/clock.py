"""The one clock of a run, and being called back by it."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from s2l.serving_adapter.precise_timer import PreciseTimer


class Timer(Protocol):
    """A call that was asked for."""

    def cancel(self) -> None:
        """Do not call."""


class Clock(Protocol):
    """A monotonic clock with timers; a fake one makes an hour pass in a blink."""

    def now_ns(self) -> int:
        """Nanoseconds since some fixed moment."""

    def call_at_ns(self, deadline_ns: int, callback: Callable[[], object]) -> Timer:
        """Call from the event loop once ``now_ns()`` has reached the deadline; never before."""

    def close(self) -> None:
        """Forget all timers."""


class MonotonicClock:
    """The system's monotonic clock, with timers that are exact to some microseconds."""

    def __init__(self) -> None:
        self._timer: PreciseTimer | None = None

    now_ns = staticmethod(time.monotonic_ns)

    def call_at_ns(self, deadline_ns: int, callback: Callable[[], object]) -> Timer:
        """By a timer of the running event loop, made when it is first needed."""
        if self._timer is None:
            self._timer = PreciseTimer(asyncio.get_running_loop())
        return self._timer.call_at_ns(deadline_ns, callback)

    def close(self) -> None:
        """Free the timer."""
        if self._timer is not None:
            self._timer.close()
            self._timer = None
