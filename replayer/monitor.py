"""Watches the client itself while it measures: a late event loop makes every number late."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import psutil

from s2l.replayer.clock import Timer
from s2l.replayer.garbage import GarbageControl
from s2l.replayer.pacer import Pacer
from s2l.replayer.passes import Pass

PERIOD_US: Final = 50_000
_RSS_EVERY: Final = 20


@dataclass(frozen=True, slots=True)
class ClientSample:
    """How late the loop woke at ``time_us``, and what the process has used up to then, in the pass
    of that ``delivery`` and ``answer_at``."""

    delivery: str
    answer_at: str | None
    time_us: int
    loop_lag_us: int
    cpu_s: float
    rss_bytes: int
    gc_pause_us: int | None = None
    in_flight: int | None = None
    worker: int | None = None


class Monitor:
    """Samples the event loop it runs on, 20 times a second, between ``start`` and ``stop``."""

    def __init__(
        self, sink: Callable[[ClientSample], None], garbage: GarbageControl, worker: int | None
    ) -> None:
        self._sink = sink
        self._garbage = garbage
        self._worker = worker
        self._process = psutil.Process()
        self._timer: Timer | None = None
        self._ticks = 0
        self._rss_bytes = 0

    def start(self, pacer: Pacer, todo: Pass, in_flight: Callable[[], int]) -> None:
        """Sample until stopped."""
        self._pacer, self._todo, self._in_flight = pacer, todo, in_flight
        self._due_us = pacer.now_us()
        self._sample()

    def stop(self) -> None:
        """Sample once more, and no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._note(self._pacer.now_us(), 0)

    def _sample(self) -> None:
        now_us = self._pacer.now_us()
        self._note(now_us, max(0, now_us - self._due_us))
        # A long pause is one late sample, not many.
        self._due_us = max(self._due_us + PERIOD_US, now_us)
        self._timer = self._pacer.call_at_us(self._due_us, self._sample)

    def _note(self, now_us: int, lag_us: int) -> None:
        if self._ticks % _RSS_EVERY == 0:
            self._rss_bytes = self._process.memory_info().rss
        self._ticks += 1
        sample = ClientSample(
            self._todo.delivery,
            self._todo.answer_at,
            now_us,
            lag_us,
            time.process_time(),
            self._rss_bytes,
            self._garbage.pause_us,
            self._in_flight(),
            self._worker,
        )
        self._sink(sample)
