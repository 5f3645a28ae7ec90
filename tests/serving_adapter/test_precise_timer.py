"""Timers: in order, never early, cancellable, on both loops and without a timerfd too."""

import asyncio
import os
import random
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from s2l.serving_adapter import precise_timer
from s2l.serving_adapter.precise_timer import PreciseTimer

MS = 1_000_000
Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=["asyncio", "uvloop", "no timerfd"])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a coroutine on the loop under test."""
    if request.param == "no timerfd":
        monkeypatch.setattr(precise_timer, "_HAS_TIMERFD", False)
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop

    def run_on_loop(coroutine: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(coroutine)

    return run_on_loop


def test_callbacks_come_in_order_of_deadline_and_never_early(run: Run) -> None:
    fired: list[tuple[int, int]] = []
    draw = random.Random(7)

    async def scenario() -> None:
        timer = PreciseTimer(asyncio.get_running_loop())
        start_ns = time.monotonic_ns()
        deadlines = [start_ns + draw.randrange(30 * MS) for _ in range(200)]
        for deadline_ns in deadlines:
            timer.call_at_ns(
                deadline_ns, lambda d=deadline_ns: fired.append((d, time.monotonic_ns()))
            )
        await timer.sleep_until_ns(start_ns + 31 * MS)
        assert [d for d, _ in fired] == sorted(deadlines)
        timer.close()

    run(scenario())
    assert all(now >= deadline for deadline, now in fired)


def test_equal_deadlines_are_served_in_order_of_asking(run: Run) -> None:
    fired: list[int] = []

    async def scenario() -> None:
        timer = PreciseTimer(asyncio.get_running_loop())
        at_ns = time.monotonic_ns() + MS
        for i in range(50):
            timer.call_at_ns(at_ns, lambda i=i: fired.append(i))
        await timer.sleep_until_ns(at_ns)
        timer.close()

    run(scenario())
    assert fired == list(range(50))


def test_cancelled_timers_do_not_fire_and_leave_the_others(run: Run) -> None:
    fired: list[int] = []

    async def scenario() -> None:
        timer = PreciseTimer(asyncio.get_running_loop())
        at_ns = time.monotonic_ns() + 5 * MS
        handles = [timer.call_at_ns(at_ns + i, lambda i=i: fired.append(i)) for i in range(1000)]
        for i, handle in enumerate(handles):
            if i % 10:
                handle.cancel()
                handle.cancel()
        await timer.sleep_until_ns(at_ns + MS)
        handles[0].cancel()  # it has fired: nothing to cancel
        assert fired == list(range(0, 1000, 10))
        timer.close()

    run(scenario())


def test_a_callback_can_ask_for_an_earlier_timer_and_for_a_past_one(run: Run) -> None:
    fired: list[str] = []

    async def scenario() -> None:
        timer = PreciseTimer(asyncio.get_running_loop())
        now_ns = time.monotonic_ns()

        def first() -> None:
            fired.append("first")
            timer.call_at_ns(now_ns + 3 * MS, lambda: fired.append("between"))
            timer.call_at_ns(0, lambda: fired.append("past"))

        timer.call_at_ns(now_ns + 6 * MS, lambda: fired.append("last"))
        timer.call_at_ns(now_ns + MS, first)
        await timer.sleep_until_ns(now_ns + 7 * MS)
        timer.close()

    run(scenario())
    assert fired == ["first", "past", "between", "last"]


def test_a_failing_callback_is_reported_and_stops_no_other(run: Run) -> None:
    seen: list[object] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: seen.append(str(context["exception"])))
        timer = PreciseTimer(loop)
        at_ns = time.monotonic_ns() + MS

        def fail() -> None:
            raise ValueError("no such token")

        timer.call_at_ns(at_ns, fail)
        timer.call_at_ns(at_ns, lambda: seen.append("the next one"))
        await timer.sleep_until_ns(at_ns)
        timer.close()

    run(scenario())
    assert seen == ["no such token", "the next one"]


def test_a_sleep_that_is_cancelled_leaves_no_timer(run: Run) -> None:
    async def scenario() -> None:
        timer = PreciseTimer(asyncio.get_running_loop())
        start_ns = time.monotonic_ns()
        sleeping = asyncio.create_task(timer.sleep_until_ns(start_ns + 60_000 * MS))
        await timer.sleep_until_ns(start_ns + MS)
        sleeping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleeping
        await timer.sleep_until_ns(0)
        assert time.monotonic_ns() - start_ns < 10_000 * MS
        timer.close()

    run(scenario())


def test_closing_frees_the_descriptor_and_forgets_the_timers(run: Run) -> None:
    fired: list[int] = []
    open_before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        timer, other = PreciseTimer(loop), PreciseTimer(loop)
        timer.call_at_ns(time.monotonic_ns() + MS, lambda: fired.append(1))
        timer.close()
        timer.close()
        await other.sleep_until_ns(time.monotonic_ns() + 3 * MS)
        other.close()

    run(scenario())
    assert fired == []
    if open_before:
        assert len(os.listdir("/proc/self/fd")) == open_before


def test_a_closed_timer_sets_no_other_timer(run: Run) -> None:
    """Its descriptor's number is given to the next one."""
    fired: list[str] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        old = PreciseTimer(loop)
        old.close()
        new = PreciseTimer(loop)
        now_ns = time.monotonic_ns()
        new.call_at_ns(now_ns + 5 * MS, lambda: fired.append("new"))
        old.call_at_ns(now_ns + 60_000 * MS, lambda: fired.append("old"))
        async with asyncio.timeout(30):
            await new.sleep_until_ns(now_ns + 10 * MS)
        new.close()

    run(scenario())
    assert fired == ["new"]
