"""A capture that runs in another process: what it is asked to do, and what is seen of it."""

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol

from s2l.collectors.collect import Progress


class Watch:
    """Between a capture and the worker that runs it, on the event loop of both.

    The capture opens all that it needs, awaits ``begin``, and then captures; it keeps ``progress``
    and ``waiting`` true, and begins no further query once ``stop`` is set.
    """

    def __init__(self) -> None:
        self.progress = Progress(0, 0, {})
        self.waiting: Callable[[], Mapping[str, int]] = dict
        self.stop = asyncio.Event()
        self.ready: Future[None] = Future()
        """Done once everything is open."""
        self._start_ns = 0
        self._begun = asyncio.Event()

    async def begin(self) -> int:
        """Wait for the moment when all workers begin; microseconds since the trace's start."""
        self.ready.set_result(None)
        await self._begun.wait()
        return max(0, (time.monotonic_ns() - self._start_ns) // 1000)

    def start(self, start_ns: int) -> None:
        """Let it begin; the trace has started at ``start_ns`` of this machine's clock."""
        self._start_ns = start_ns
        self._begun.set()

    def update(self, progress: Progress) -> None:
        """Take note of how far it is."""
        self.progress = progress


class Job(Protocol):
    """A worker's share of a capture; it travels to the worker."""

    async def capture(self, path: Path, watch: Watch) -> Any:
        """Capture into a new trace folder; what is returned goes to the one that planned it.

        Where this is cancelled or fails, what was flushed is kept. Raises what the capture raises.
        """
