"""Keeps a run to its schedule: absolute deadlines from one start, so that nothing drifts."""

from collections.abc import Callable

from s2l.replayer.clock import Clock, Timer


class Pacer:
    """Times are microseconds since the pacer was made, or since ``start_ns`` of its clock."""

    def __init__(self, clock: Clock, *, start_ns: int | None = None) -> None:
        self._clock = clock
        self._now_ns = clock.now_ns
        self.start_ns = clock.now_ns() if start_ns is None else start_ns

    def now_us(self) -> int:
        """The time now."""
        return (self._now_ns() - self.start_ns) // 1000

    def call_at_us(self, time_us: int, callback: Callable[[], object]) -> Timer:
        """Call back then, never before."""
        return self._clock.call_at_ns(self.start_ns + time_us * 1000, callback)
