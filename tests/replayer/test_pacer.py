"""Deadlines are absolute: hours of them drift by nothing."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

from s2l.replayer.clock import MonotonicClock
from s2l.replayer.pacer import Pacer


class _Call:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class LateClock:
    """Time that passes only by waiting; each timer is late by a millisecond."""

    def __init__(self) -> None:
        self.now = 5_000
        self._calls: list[tuple[int, int, _Call]] = []
        self._tie = count()

    def now_ns(self) -> int:
        return self.now

    def call_at_ns(self, deadline_ns: int, callback: Callable[[], object]) -> _Call:
        call = _Call(callback)
        heapq.heappush(self._calls, (deadline_ns, next(self._tie), call))
        return call

    def close(self) -> None:
        self._calls.clear()

    def run(self) -> None:
        while self._calls:
            deadline_ns, _, call = heapq.heappop(self._calls)
            if call.callback is not None:
                self.now = max(self.now, deadline_ns + 1_000_000)
                call.callback()


def test_ten_hours_of_late_timers_do_not_add_up() -> None:
    clock = LateClock()
    pacer = Pacer(clock)
    lags = []

    def at(second: int) -> None:
        lags.append(pacer.now_us() - second * 1_000_000)
        if second < 36_000:
            pacer.call_at_us((second + 1) * 1_000_000, lambda: at(second + 1))

    pacer.call_at_us(1_000_000, lambda: at(1))
    clock.run()
    assert len(lags) == 36_000
    assert set(lags) == {1000}


async def test_the_real_clock_is_never_early() -> None:
    clock = MonotonicClock()
    pacer, done = Pacer(clock), asyncio.Event()
    early: list[int] = []

    def at(deadline_us: int) -> None:
        early.append(min(0, pacer.now_us() - deadline_us))
        if deadline_us == 19_000:
            done.set()

    for deadline_us in range(1000, 20_000, 1000):
        pacer.call_at_us(deadline_us, lambda us=deadline_us: at(us))  # type: ignore[misc]
    await asyncio.wait_for(done.wait(), 5)
    clock.close()
    assert early == [0] * 19


async def test_calls_come_in_the_order_of_their_deadlines() -> None:
    clock = MonotonicClock()
    pacer, done = Pacer(clock), asyncio.Event()
    called: list[int] = []

    def at(time_us: int) -> None:
        called.append(time_us)
        if len(called) == 3:
            done.set()

    for time_us in (30_000, 10_000, 20_000):
        pacer.call_at_us(time_us, lambda us=time_us: at(us))  # type: ignore[misc]
    pacer.call_at_us(15_000, lambda: at(0)).cancel()
    await asyncio.wait_for(done.wait(), 5)
    clock.close()
    assert called == [10_000, 20_000, 30_000]
