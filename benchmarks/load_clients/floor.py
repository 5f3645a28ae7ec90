"""The floor: the leanest client that is exact, and does nothing but send and see the first token.

A raw asyncio protocol over kept-alive connections, uvloop, a timerfd, no garbage collection. It
parses nothing, records two times a request, and knows no failures. As the replayer does, it opens
connections ahead: for answers that take one and a half times what one takes here.

``python floor.py URL DUE PROMPT OUT``: DUE is a file with the times of the requests, a JSON list of
microseconds, PROMPT one with the prompt; OUT gets the times to first token in milliseconds, in the
order of their sending, as JSON.
"""

import asyncio
import gc
import json
import sys
import time
from collections import deque
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import uvloop

from s2l.serving_adapter.precise_timer import PreciseTimer

LEAD_NS = 200_000_000
AHEAD_S = 1.5 * 0.37
AT_ONCE = 64


class Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, load: "Load") -> None:
        self._load = load
        self._transport = cast(asyncio.Transport, None)
        self._number = 0
        self._waits = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._load.opened(self)

    def send(self, number: int) -> None:
        """Send one request."""
        self._number, self._waits = number, True
        self._transport.write(self._load.request)
        self._load.sent_ns[number] = time.monotonic_ns()

    def data_received(self, data: bytes) -> None:
        if self._waits and b"data: " in data:
            self._load.first_ns[self._number] = time.monotonic_ns()
            self._waits = False
        if b"[DONE]" in data:
            self._load.ended(self)


class Load:
    """All requests of a run."""

    def __init__(self, url: str, due_us: list[int], prompt: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._due_us, self._n = due_us, len(due_us)
        self._ahead = min(self._n, round(self._n * AHEAD_S * 1e6 / max(1, due_us[-1])))
        self.sent_ns, self.first_ns = [0] * self._n, [0] * self._n
        self._free: deque[Connection] = deque()
        self._waiting: deque[int] = deque()
        self._next, self._ended = 0, 0
        self._tasks: set[asyncio.Task[object]] = set()
        body = json.dumps(
            {"model": "mock", "prompt": prompt, "max_tokens": 32, "stream": True}
        ).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.request = head.encode() + body

    async def run(self) -> None:
        """Send all, and wait for all."""
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._timer = PreciseTimer(self._loop)
        for first in range(0, self._ahead, AT_ONCE):
            count = min(AT_ONCE, self._ahead - first)
            await asyncio.gather(*(self._connect() for _ in range(count)))
        self._start_ns = time.monotonic_ns() + LEAD_NS
        self._timer.call_at_ns(self._start_ns, self._send)
        await self._over.wait()
        self._timer.close()

    def opened(self, connection: Connection) -> None:
        """A connection is there."""
        self._take_next(connection)

    def ended(self, connection: Connection) -> None:
        """An answer is complete."""
        self._ended += 1
        self._take_next(connection)
        if self._ended == self._n:
            self._over.set()

    def _take_next(self, connection: Connection) -> None:
        if self._waiting:
            connection.send(self._waiting.popleft())
        else:
            self._free.append(connection)

    def _due_ns(self, number: int) -> int:
        return self._start_ns + self._due_us[number] * 1000

    def _send(self) -> None:
        while self._next < self._n and self._due_ns(self._next) <= time.monotonic_ns():
            number = self._next
            self._next += 1
            if self._free:
                self._free.pop().send(number)
            else:
                self._waiting.append(number)
                task = self._loop.create_task(self._connect())
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        if self._next < self._n:
            self._timer.call_at_ns(self._due_ns(self._next), self._send)

    async def _connect(self) -> None:
        await self._loop.create_connection(lambda: Connection(self), self._host, self._port)


def main() -> None:
    """Run what the arguments say."""
    url, due, prompt, out = sys.argv[1:]
    load = Load(url, json.loads(Path(due).read_text()), Path(prompt).read_text())
    gc.freeze()
    gc.disable()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(load.run())
    pairs = zip(load.first_ns, load.sent_ns, strict=True)
    Path(out).write_text(json.dumps([(first - sent) / 1e6 for first, sent in pairs]))


if __name__ == "__main__":
    main()
