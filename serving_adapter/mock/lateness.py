"""How far the mock itself is off its own schedule."""

from array import array
from typing import Final

_BOUND_US: Final = 100_000


class Lateness:
    """Counts how late tokens were written, by the microsecond; 100 ms and more count as 100 ms."""

    def __init__(self) -> None:
        self._counts = array("q", bytes(8 * (_BOUND_US + 1)))
        self.events = 0

    def add(self, late_ns: int) -> None:
        """One event was written that long after it was due."""
        self.events += 1
        self._counts[min(late_ns // 1000, _BOUND_US)] += 1

    def percentile_ms(self, percent: float) -> float | None:
        """Milliseconds that this share of the events was not later than; None without events."""
        if not self.events:
            return None
        left = self.events * percent / 100
        for late_us, count in enumerate(self._counts):
            left -= count
            if left <= 0 and count:
                return (late_us + 1) / 1000
        return _BOUND_US / 1000

    def summary(self) -> dict[str, float | int | None]:
        """Percentiles in milliseconds."""
        named = {f"p{p}_ms": self.percentile_ms(p) for p in (50, 90, 99, 99.9, 100)}
        return {"events": self.events, **named}

    def clear(self) -> None:
        """Begin anew."""
        self.__init__()  # type: ignore[misc]
