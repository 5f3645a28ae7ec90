"""The event loop that keeps time best: a replay and the mock run on it."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed, else asyncio's: slower, as exact."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end, as ``asyncio.run`` does, on the loop that keeps time best."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)
