"""Timers that fire within microseconds of their deadline, on asyncio's loop and on uvloop.

Both loops round their own timers up to a millisecond. A timerfd in the loop is exact: it becomes
readable when its deadline on ``CLOCK_MONOTONIC`` has passed, and the loop wakes up for it.
"""

import asyncio
import ctypes
import heapq
import os
import sys
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

_CLOCK_MONOTONIC: Final = 1
_ABSOLUTE: Final = 1
_NS: Final = 1_000_000_000
_NEAR_NS: Final = 50_000
"""A deadline this near is awaited by turning the loop: that takes less of the processor's time than
setting the kernel's timer (up to 12 µs on a virtual machine) and being woken by it."""
_SWEEP_FROM: Final = 256
"""Cancelled timers are swept out when they are most of a heap of at least this size."""


class TimerHandle:
    """One timer that was asked for."""

    __slots__ = ("_timer", "callback", "deadline_ns")

    def __init__(
        self, timer: "PreciseTimer", deadline_ns: int, callback: Callable[[], object]
    ) -> None:
        self._timer = timer
        self.deadline_ns = deadline_ns
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        """The callback will not be called; nothing happens where it already was."""
        if self.callback is not None:
            self.callback = None
            self._timer._note_cancelled()


class PreciseTimer:
    """Calls back at absolute times of ``time.monotonic_ns()``: never before, in order of their
    deadlines, and of asking where these are equal.

    One wake-up of the loop serves all that are due. A callback that raises is reported to the
    loop's exception handler and stops no other.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._heap: list[tuple[int, int, TimerHandle]] = []
        self._asked = 0
        self._cancelled = 0
        self._armed_ns: int | None = None
        self._firing = False
        self._turning = False
        self._closed = False
        self._alarm: _Alarm = (
            _TimerfdAlarm(loop, self._fire) if _HAS_TIMERFD else _LoopAlarm(loop, self._fire)
        )

    def call_at_ns(self, deadline_ns: int, callback: Callable[[], object]) -> TimerHandle:
        """Call back once ``time.monotonic_ns()`` is at least ``deadline_ns``; never once closed, as
        the descriptor's number may be another's by then."""
        handle = TimerHandle(self, deadline_ns, callback)
        if self._closed:
            return handle
        self._asked += 1
        heapq.heappush(self._heap, (deadline_ns, self._asked, handle))
        if not self._firing and (self._armed_ns is None or deadline_ns < self._armed_ns):
            self._armed_ns = deadline_ns
            self._alarm.arm(deadline_ns)
        return handle

    async def sleep_until_ns(self, deadline_ns: int) -> None:
        """Sleep until that time of ``time.monotonic_ns()``; a past one yields once."""
        done = self._loop.create_future()

        def wake() -> None:
            if not done.done():
                done.set_result(None)

        handle = self.call_at_ns(deadline_ns, wake)
        try:
            await done
        finally:
            handle.cancel()

    def close(self) -> None:
        """Forget all timers and free the file descriptor; closing twice is no error."""
        self._closed = True
        self._heap.clear()
        self._alarm.close()

    def _fire(self) -> None:
        self._firing = True
        try:
            self._call_due(time.monotonic_ns())
        finally:
            self._firing = False
            self._arm_next()

    def _call_due(self, now_ns: int) -> None:
        heap = self._heap
        while heap and heap[0][0] <= now_ns:
            handle = heapq.heappop(heap)[2]
            callback, handle.callback = handle.callback, None
            if callback is None:
                self._cancelled -= 1
                continue
            try:
                callback()
            except Exception as error:
                self._loop.call_exception_handler(
                    {"message": "a timer's callback failed", "exception": error}
                )

    def _arm_next(self) -> None:
        heap = self._heap
        while heap and heap[0][2].callback is None:
            heapq.heappop(heap)
            self._cancelled -= 1
        if not heap:
            self._armed_ns = None
            return
        deadline_ns = self._armed_ns = heap[0][0]
        if deadline_ns - time.monotonic_ns() < _NEAR_NS:
            if not self._turning:
                self._turning = True
                self._loop.call_soon(self._turn)
        else:
            self._alarm.arm(deadline_ns)

    def _turn(self) -> None:
        self._turning = False
        if self._heap:
            self._fire()

    def _note_cancelled(self) -> None:
        self._cancelled += 1
        if len(self._heap) >= _SWEEP_FROM and self._cancelled * 2 > len(self._heap):
            self._heap[:] = [entry for entry in self._heap if entry[2].callback is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0


class _Alarm(Protocol):
    """Wakes up once, at or soon after the deadline that was set last."""

    def arm(self, deadline_ns: int) -> None: ...

    def close(self) -> None: ...


class _LoopAlarm:
    """The loop's own timers, where there is no timerfd: up to a millisecond late."""

    def __init__(self, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
        self._loop = loop
        self._wake = wake
        self._handle: asyncio.TimerHandle | None = None

    def arm(self, deadline_ns: int) -> None:
        self.close()
        delay_s = (deadline_ns - time.monotonic_ns()) / _NS
        self._handle = self._loop.call_later(max(0.0, delay_s), self._wake)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()


class _TimerfdAlarm:
    """A timerfd that the loop watches."""

    def __init__(self, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
        self._loop = loop
        self._wake = wake
        self._fd = _create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        self.arm: Callable[[int], None] = _setter(self._fd)
        loop.add_reader(self._fd, self._on_readable)

    def _on_readable(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return  # armed anew since the loop saw it readable
        self._wake()

    def close(self) -> None:
        if self._fd < 0:
            return
        if not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        os.close(self._fd)
        self._fd = -1


class _Timespec(ctypes.Structure):
    _fields_ = (("s", ctypes.c_long), ("ns", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


def _library() -> Any:
    """The C library where it has timerfd, which Python wraps from 3.13 on."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None, use_errno=True)
    return library if hasattr(library, "timerfd_create") else None


_LIBC: Final = _library()
_HAS_TIMERFD: Final = hasattr(os, "timerfd_create") or _LIBC is not None


def _create(clock: int, flags: int) -> int:
    if sys.version_info >= (3, 13):
        return os.timerfd_create(clock, flags=flags)
    fd = int(_LIBC.timerfd_create(clock, flags))
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"timerfd_create: {os.strerror(code)}")
    return fd


def _setter(fd: int) -> Callable[[int], None]:
    """A function that arms the timer; a deadline of 0 would disarm it, so 1 ns is the least."""
    if sys.version_info >= (3, 13):
        return lambda deadline_ns: (
            os.timerfd_settime_ns(fd, flags=_ABSOLUTE, initial=max(1, deadline_ns)) and None
        )
    spec = _Itimerspec()
    value, pointer, call = spec.value, ctypes.byref(spec), _LIBC.timerfd_settime

    def arm(deadline_ns: int) -> None:
        value.s, value.ns = divmod(max(1, deadline_ns), _NS)
        if call(fd, _ABSOLUTE, pointer, None):
            code = ctypes.get_errno()
            raise OSError(code, f"timerfd_settime: {os.strerror(code)}")

    return arm
