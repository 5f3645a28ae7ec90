"""Events on their way to a client, in order, and never more of them than are allowed to wait."""

import asyncio
from collections import deque
from typing import Protocol

import msgspec

from s2l.serving_adapter.realtime.limits import POLICY_VIOLATION, Ending, Limits
from s2l.serving_adapter.realtime.server_events import Event


class Sink(Protocol):
    """Where frames go."""

    async def send(self, frame: str) -> None:
        """Send one text frame; a client that is gone is no error."""


class Outbox:
    """Takes events at once and sends them in the background: who sends never waits for a reader.

    A client that does not read is dropped: when too much waits for it, or one event too long.
    """

    def __init__(self, sink: Sink, limits: Limits) -> None:
        self._sink = sink
        self._limits = limits
        self._frames: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._news = asyncio.Event()
        self._closing = False
        self._overflowed = False
        self._sending: asyncio.Timeout | None = None

    def put(self, event: Event) -> None:
        """Send an event after those before it."""
        frame = msgspec.json.encode(event)
        if self._unsent_bytes + len(frame) > self._limits.max_unsent_bytes:
            self._overflowed = True
            if self._sending is not None and not self._sending.expired():
                self._sending.reschedule(0.0)  # at once
        else:
            self._frames.append(frame)
            self._unsent_bytes += len(frame)
        self._news.set()

    def close(self) -> None:
        """Nothing more comes: ``drain`` ends when all is sent."""
        self._closing = True
        self._news.set()

    async def drain(self) -> Ending:
        """Send until closed, or until the client is too slow; says which."""
        while not self._overflowed:
            if self._frames:
                if not await self._sent(self._frames[0]):
                    break
                self._unsent_bytes -= len(self._frames.popleft())
            elif self._closing:
                return Ending()
            else:
                self._news.clear()
                await self._news.wait()
        limit = "max_unsent_bytes" if self._overflowed else "max_send_s"
        reason = f"the client does not read what it is sent ({limit})"
        return Ending(POLICY_VIOLATION, reason, limit)

    async def _sent(self, frame: bytes) -> bool:
        try:
            async with asyncio.timeout(self._limits.max_send_s) as self._sending:
                await self._sink.send(frame.decode())
        except TimeoutError:
            return False
        finally:
            self._sending = None
        return True
