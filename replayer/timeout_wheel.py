"""Timeouts of many requests at the price of one timer: they are kept by coarse ticks."""

import heapq
from collections.abc import Iterator
from typing import Final, Generic, Protocol, TypeVar

TICK_US: Final = 20_000
"""A timeout is noticed at most this long after it has passed."""


class Watched(Protocol):
    """What has a timeout; ``tick`` is the wheel's own note."""

    tick: int | None


W = TypeVar("W", bound=Watched)


class TimeoutWheel(Generic[W]):
    """Holds each of its members once, at its next deadline; nothing that has ended stays in it."""

    def __init__(self) -> None:
        self._buckets: dict[int, dict[W, None]] = {}
        self._ticks: list[int] = []

    def put(self, member: W, deadline_us: int) -> None:
        """Watch it, or move it to another deadline."""
        tick = -(-deadline_us // TICK_US)
        if member.tick == tick:
            return
        self.discard(member)
        if tick not in self._buckets:
            self._buckets[tick] = {}
            heapq.heappush(self._ticks, tick)
        self._buckets[tick][member] = None
        member.tick = tick

    def discard(self, member: W) -> None:
        """Watch it no longer."""
        if member.tick is not None:
            self._buckets[member.tick].pop(member, None)
            member.tick = None

    def next_us(self) -> int | None:
        """When to look again; None where nothing is watched."""
        ticks, buckets = self._ticks, self._buckets
        while ticks and not buckets[ticks[0]]:
            del buckets[heapq.heappop(ticks)]
        return ticks[0] * TICK_US if ticks else None

    def due(self, now_us: int) -> Iterator[W]:
        """Those whose deadline may have passed, taken out."""
        while self._ticks and self._ticks[0] * TICK_US <= now_us:
            for member in self._buckets.pop(heapq.heappop(self._ticks)):
                member.tick = None
                yield member
