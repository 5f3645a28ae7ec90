"""Many small pieces of asynchronous work, a few at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


async def each(
    function: Callable[[Item], Awaitable[Result]], items: Iterable[Item], at_once: int
) -> list[Result]:
    """The function of all items, in order, by so many workers: there is no task for an item.

    Raises what the first call that fails raises; the others are cancelled.
    """
    left = enumerate(items)
    found: dict[int, Result] = {}

    async def work() -> None:
        for number, item in left:  # of all workers together: each takes the next one
            found[number] = await function(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(work())
    except BaseExceptionGroup as failures:
        raise first_of(failures) from None
    return [found[number] for number in range(len(found))]


def first_of(errors: BaseExceptionGroup[Any]) -> BaseException:
    """The error that cancelled the other tasks, out of groups in groups."""
    first = errors.exceptions[0]
    return first_of(first) if isinstance(first, BaseExceptionGroup) else first
