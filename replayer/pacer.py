"""Keeps a run to its schedule: absolute deadlines from one start, so that nothing drifts."""

from s2l.replayer.clock import Clock


class Pacer:
    """Times are microseconds since the pacer was made."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start_ns = clock.now_ns()

    def now_us(self) -> int:
        """The time now."""
        return (self._clock.now_ns() - self._start_ns) // 1000

    async def until(self, time_us: int) -> None:
        """Sleep until then."""
        await self._clock.sleep_until_ns(self._start_ns + time_us * 1000)
