"""Replays one pass: every request at its time, every piece of context at its own.

There is no task for a request. One timer is armed for the next thing to do, and when it fires all
that is due is done; what servers answer is noted where it comes in.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final

import numpy as np
import numpy.typing as npt

from s2l.replayer.clock import Timer
from s2l.replayer.flight import Flight
from s2l.replayer.limits import Limits
from s2l.replayer.pacer import Pacer
from s2l.replayer.passes import Pass
from s2l.replayer.record import INTERRUPTED, RequestRecord
from s2l.replayer.timeout_wheel import TimeoutWheel
from s2l.serving_adapter.base import PreparedRequest

BURST_US: Final = 500
"""After so long a burst of sending, what has come in is read before more is sent."""
GONE_AFTER: Final = 20
GONE_AFTER_US: Final = 5_000_000
"""A server that refused so many connections in a row, over at least so long, is gone."""

Sink = Callable[[RequestRecord], None]


class Replayer:
    """One pass under way.

    ``concurrency`` is a closed loop: always so many under way, each begun when one before it ends;
    the schedule then says only their order. ``max_concurrency`` caps an open loop: what waits for
    its turn keeps its intended time. ``cancel_us`` is, for each request, when its client gives up
    (µs since its start), negative where it does not.
    """

    def __init__(
        self,
        todo: Pass,
        requests: Sequence[PreparedRequest],
        pacer: Pacer,
        sink: Sink,
        *,
        start_us: int,
        limits: Limits | None = None,
        concurrency: int | None = None,
        max_concurrency: int | None = None,
        duration_us: int | None = None,
        cancel_us: npt.NDArray[np.int64] | None = None,
        on_start: Callable[[int], None] | None = None,
    ) -> None:
        self.todo = todo
        self.limits = limits or Limits()
        self.now_us = pacer.now_us
        self.start_us = start_us
        self.started = 0
        """How many requests were started: those of the pass from here on are unsent."""
        self.server_gone = False
        self._requests = requests
        self._pacer = pacer
        self._sink = sink
        self.closed_loop = concurrency is not None
        slots = concurrency or max_concurrency
        self._free_us = None if slots is None else deque([start_us] * slots)
        self._duration_us = duration_us
        self._cancel_us = cancel_us
        self._on_start = on_start
        self._agenda: list[tuple[int, int, Flight]] = []
        self._tie = count()
        self._wheel: TimeoutWheel[Flight] = TimeoutWheel()
        self._flights: dict[Flight, None] = {}
        self._timer: Timer | None = None
        self._kicked = False
        self._over: asyncio.Future[None] | None = None
        self._draining = False
        self._refused, self._refused_since_us = 0, 0
        self._next_us: int | None = None

    @property
    def in_flight(self) -> int:
        """Requests under way."""
        return len(self._flights)

    def idle_us(self) -> int | None:
        """Time until something is to be sent; None where nothing is."""
        return None if self._next_us is None else self._next_us - self.now_us()

    async def run(self) -> None:
        """Replay to the end; every request that was started has been given to the sink by then,
        however it ends: cancelling it stops at once."""
        self._over = asyncio.get_running_loop().create_future()
        self._wake()
        try:
            await self._over
        finally:
            self.stop()

    def drain(self) -> None:
        """Start nothing more; what is under way goes on to its end."""
        self._draining = True
        self._kick()

    def stop(self) -> None:
        """End at once: what is under way is over as ``interrupted``."""
        self._draining = True
        for flight in list(self._flights):
            flight.abandon(INTERRUPTED)
        if self._timer is not None:
            self._timer.cancel()
        if self._over is not None and not self._over.done():
            self._over.set_result(None)

    def on_watch(self, flight: Flight) -> None:
        """Keep its next timeout; the timer is armed for it at the end of this turn at the latest
        a tick late."""
        self._wheel.put(flight, flight.deadline_us()[0])
        self._kick()

    def on_due(self, flight: Flight, time_us: int) -> None:
        """Advance it at that time."""
        flight.due_us = time_us
        heapq.heappush(self._agenda, (time_us, next(self._tie), flight))
        self._kick()

    def on_ended(self, flight: Flight) -> None:
        """Hand its record on and let the next one start."""
        record = flight.record
        self._wheel.discard(flight)
        del self._flights[flight]
        self._note_refusal(record)
        self._sink(record)
        if self._free_us is not None:
            self._free_us.append(record.end_us or 0)
        if self._free_us is not None or not self._flights:
            self._kick()

    def _kick(self) -> None:
        """Look for what is due in the loop's next turn."""
        if not self._kicked and self._over is not None:
            self._kicked = True
            self._over.get_loop().call_soon(self._wake)

    def _wake(self) -> None:
        self._kicked = True  # until the end of this turn, there is nobody to be woken
        try:
            next_us = self._do_what_is_due()
        except Exception as error:
            if self._over is not None and not self._over.done():
                self._over.set_exception(error)
            raise
        finally:
            self._kicked = False
        if self._over is None or self._over.done():
            return
        self._next_us = next_us
        if self._timer is not None:
            self._timer.cancel()
        if next_us is not None:
            self._timer = self._pacer.call_at_us(next_us, self._wake)
        elif not self._flights:
            self._over.set_result(None)

    def _do_what_is_due(self) -> int | None:
        """Send all that is due, in the order of its times; the next deadline, None at the end."""
        agenda, now_us = self._agenda, self.now_us()
        until_us = now_us + BURST_US
        while now_us < until_us:
            start_us = self._next_start_us(now_us)
            due_us = agenda[0][0] if agenda else None
            if start_us is not None and start_us <= now_us and (due_us or now_us) >= start_us:
                self._start_next(now_us)
            elif due_us is not None and due_us <= now_us:
                due_us, _, flight = heapq.heappop(agenda)
                if flight.due_us == due_us:
                    self._advance(flight, now_us)
            else:
                break
            now_us = self.now_us()
        for flight in self._wheel.due(now_us):
            if flight.check(now_us):
                self._wheel.put(flight, max(flight.deadline_us()[0], now_us + 1))
        times = (self._next_start_us(now_us), agenda[0][0] if agenda else None)
        return min((t for t in (*times, self._wheel.next_us()) if t is not None), default=None)

    def _next_start_us(self, now_us: int) -> int | None:
        """When the next request starts; None where none does, or one must end before."""
        if self._draining or self.started >= len(self.todo):
            return None
        if self._free_us is not None and not self._free_us:
            return None
        if self.closed_loop:
            over = self._duration_us is not None and now_us >= self.start_us + self._duration_us
            return None if over else max(self.start_us, now_us)
        return self.start_us + int(self.todo.starts_us[self.started])

    def _start_next(self, now_us: int) -> None:
        index = self.started
        self.started += 1
        if self._on_start is not None:
            self._on_start(self.started)
        record = self.todo.record(index, self.start_us)
        if self._free_us is not None:
            free_us = self._free_us.popleft()
            if self.closed_loop:
                record.start_intended_us = record.eligible_us = free_us
            record.eligible_us = max(record.eligible_us, free_us)
        cancel_us = int(self._cancel_us[index]) if self._cancel_us is not None else -1
        flight = Flight(
            record,
            self._requests[record.number % len(self._requests)],
            self,
            salt=self.todo.salt(record),
            cancel_us=record.start_intended_us + cancel_us if cancel_us >= 0 else None,
        )
        self._flights[flight] = None
        self._advance(flight, now_us)

    def _advance(self, flight: Flight, now_us: int) -> None:
        next_us = flight.advance(now_us)
        if next_us is not None:
            flight.due_us = next_us
            heapq.heappush(self._agenda, (next_us, next(self._tie), flight))

    def _note_refusal(self, record: RequestRecord) -> None:
        if record.error_type != "refused" or record.end_us is None:
            self._refused = 0
            return
        if self._refused == 0:
            self._refused_since_us = record.end_us
        self._refused += 1
        if (
            self._refused >= GONE_AFTER
            and record.end_us - self._refused_since_us >= GONE_AFTER_US
            and not self._draining
        ):
            self.server_gone = True
            self.drain()
