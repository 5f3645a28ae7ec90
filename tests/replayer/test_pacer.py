"""Deadlines are absolute: hours of them drift by nothing."""

import asyncio

from s2l.replayer.clock import MonotonicClock
from s2l.replayer.pacer import Pacer


class FakeClock:
    """Time that passes only by being slept; each sleep is late by a millisecond."""

    def __init__(self) -> None:
        self.now = 5_000

    def now_ns(self) -> int:
        return self.now

    async def sleep_until_ns(self, deadline_ns: int) -> None:
        self.now = max(self.now, deadline_ns + 1_000_000)


async def test_ten_hours_of_late_timers_do_not_add_up() -> None:
    pacer = Pacer(FakeClock())
    lags = []
    for second in range(1, 36_001):
        await pacer.until(second * 1_000_000)
        lags.append(pacer.now_us() - second * 1_000_000)
    assert set(lags) == {1000}


async def test_a_deadline_that_has_passed_returns_at_once() -> None:
    clock = FakeClock()
    pacer = Pacer(clock)
    await pacer.until(1_000_000)
    before = clock.now
    await pacer.until(500_000)
    assert clock.now == before


async def test_the_real_clock_is_never_early() -> None:
    pacer = Pacer(MonotonicClock())
    for deadline_us in range(1000, 20_000, 1000):
        await pacer.until(deadline_us)
        assert pacer.now_us() >= deadline_us


async def test_sleepers_wake_in_the_order_of_their_deadlines() -> None:
    pacer = Pacer(MonotonicClock())
    woken: list[int] = []

    async def sleeper(at_us: int) -> None:
        await pacer.until(at_us)
        woken.append(at_us)

    await asyncio.gather(*(sleeper(at_us) for at_us in (30_000, 10_000, 20_000)))
    assert woken == [10_000, 20_000, 30_000]
