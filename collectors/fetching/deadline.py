"""The time limits of a request, phase by phase."""

import asyncio
from types import TracebackType
from typing import Self

from s2l.collectors import failure
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.limits import FetchLimits


class Deadline:
    """Cancels what runs inside it once the phase it is in, or all of it, takes too long.

    An async context manager that turns the cancellation into a ``Failure``. ``left_s`` is what
    remains of ``total_s``.
    """

    def __init__(self, limits: FetchLimits, left_s: float) -> None:
        self._limits = limits
        self._now_s = asyncio.get_running_loop().time
        self._end_s = self._now_s() + left_s
        self._code, self._limit_s = failure.TIMEOUT, limits.total_s
        self._timeout = asyncio.timeout_at(self._end_s)

    def connected(self) -> None:
        """From here on, headers are due."""
        self._enter(failure.FIRST_BYTE_TIMEOUT, self._limits.first_byte_s)

    def more_came(self) -> None:
        """From here on, the next piece of the body is due."""
        self._enter(failure.IDLE_TIMEOUT, self._limits.idle_s)

    def left_s(self) -> float:
        """Seconds until all must be done."""
        return self._end_s - self._now_s()

    def _enter(self, code: str, limit_s: float) -> None:
        due_s = self._now_s() + limit_s
        if due_s < self._end_s:
            self._code, self._limit_s = code, limit_s
        else:
            due_s = self._end_s
            self._code, self._limit_s = failure.TIMEOUT, self._limits.total_s
        self._timeout.reschedule(due_s)

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._enter(failure.CONNECT_TIMEOUT, self._limits.connect_s)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError:
            raise Failure(self._code, f"over {self._limit_s:g} s") from None
