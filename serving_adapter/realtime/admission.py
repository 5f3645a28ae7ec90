"""Which sessions may hold KV blocks, so that those that do can always finish.

A session that has begun to prefill holds its blocks until it is answered. If more sessions begin
than the cache can hold to their end, none of them can, and the engine stands still. So each session
reserves what it can still need before its first chunk: all that the model allows while its context
is open, exactly its prompt and answer once it is complete.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field


class Overloaded(Exception):
    """So many sessions wait that another one is refused."""


@dataclass(eq=False)
class Reservation:
    """KV room for one session, in tokens; ``granted`` resolves when it has it."""

    tokens: int
    complete: bool = False
    granted: asyncio.Event = field(default_factory=asyncio.Event)


class Admission:
    """Hands out ``capacity`` tokens of KV room to at most ``max_sessions`` sessions.

    Sessions whose context is complete go first, then in order of arrival: early prefill is never
    paid for by those who are ready to be answered.
    """

    def __init__(
        self, capacity: int, *, block_size: int, max_sessions: int, max_waiting: int = 1024
    ) -> None:
        self._free_blocks = capacity // block_size
        self._block_size = block_size
        self._free_sessions = max_sessions
        self._max_waiting = max_waiting
        self._waiting: deque[Reservation] = deque()

    @property
    def waiting(self) -> int:
        """Sessions that wait for room."""
        return len(self._waiting)

    @property
    def free_tokens(self) -> int:
        """Room that is not reserved."""
        return self._free_blocks * self._block_size

    def request(self, tokens: int) -> Reservation:
        """Ask for room; wait for ``granted`` before prefilling.

        Raises:
            Overloaded: too many sessions wait already.
        """
        if len(self._waiting) >= self._max_waiting:
            raise Overloaded(f"{len(self._waiting)} sessions wait for KV cache; try again later")
        reservation = Reservation(tokens)
        self._waiting.append(reservation)
        self._grant()
        return reservation

    def shrink(self, reservation: Reservation, tokens: int) -> None:
        """The session's context is complete and it needs only ``tokens`` to its end."""
        if reservation.granted.is_set():
            self._free_blocks += self._blocks(reservation.tokens) - self._blocks(tokens)
        reservation.tokens = tokens
        reservation.complete = True
        self._grant()

    def release(self, reservation: Reservation) -> None:
        """The session is over; its blocks are free."""
        if reservation.granted.is_set():
            self._free_blocks += self._blocks(reservation.tokens)
            self._free_sessions += 1
        elif reservation in self._waiting:
            self._waiting.remove(reservation)
        self._grant()

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self._block_size)

    def _grant(self) -> None:
        for complete in (True, False):
            for reservation in [r for r in self._waiting if r.complete is complete]:
                if self._free_sessions == 0 or self._blocks(reservation.tokens) > self._free_blocks:
                    break
                self._waiting.remove(reservation)
                self._free_blocks -= self._blocks(reservation.tokens)
                self._free_sessions -= 1
                reservation.granted.set()
