"""Many small pieces of asynchronous work, a few at once."""

import asyncio

import pytest

from s2l.workloads.at_once import each


async def test_many_items_are_worked_on_a_few_at_once_and_in_order() -> None:
    running = most = 0

    async def double(item: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return item * 2

    assert await each(double, range(100), 16) == [item * 2 for item in range(100)]
    assert most == 16
    assert await each(double, [], 16) == []
    assert await each(double, [3], 16) == [6]


async def test_the_first_failure_is_raised_as_itself_and_stops_the_others() -> None:
    started = []

    async def fail(item: int) -> None:
        started.append(item)
        await asyncio.sleep(0)
        if item == 5:
            raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        await each(fail, range(1000), 4)
    assert len(started) < 20
