"""One client of a Realtime server: reads its frames, answers each, and ends it when it must."""

import asyncio
import logging
from typing import Final, Protocol

from s2l.serving_adapter.realtime import server_events as out
from s2l.serving_adapter.realtime.admission import Admission
from s2l.serving_adapter.realtime.engine import Engine
from s2l.serving_adapter.realtime.events import decode_client_event, event_id_of
from s2l.serving_adapter.realtime.limits import (
    POLICY_VIOLATION,
    Ending,
    Limits,
    exceeded,
    hit,
)
from s2l.serving_adapter.realtime.outbox import Outbox
from s2l.serving_adapter.realtime.server_session import ServerSession
from s2l.serving_adapter.realtime.session_config import RealtimeError

log = logging.getLogger(__name__)

_GOODBYE_S: Final = 1.0
"""How long the last events may take to leave when the server ends a session."""


class Socket(Protocol):
    """A WebSocket, whichever web framework it is of."""

    async def receive(self) -> str | bytes | None:
        """The next frame, None when the client is gone."""

    async def send(self, frame: str) -> None:
        """Send one text frame; a client that is gone is no error."""


class Connection:
    """Serves one session. Every client event is answered by an event or by an error."""

    def __init__(
        self,
        socket: Socket,
        engine: Engine,
        admission: Admission,
        limits: Limits | None = None,
    ) -> None:
        self._socket = socket
        self._limits = limits or Limits()
        self._outbox = Outbox(socket, self._limits)
        self._session = ServerSession(self._outbox.put, engine, admission, self._limits)
        self._last_event_s = 0.0

    async def serve(self) -> Ending:
        """Serve until the client is gone or a limit ends the session, then free all that it held.

        Returns how the socket is to be closed.
        """
        self._last_event_s = asyncio.get_running_loop().time()
        writer = asyncio.create_task(self._outbox.drain())
        reader = asyncio.create_task(self._read())
        clock = asyncio.create_task(self._expire())
        jobs = (reader, writer, clock)
        done: set[asyncio.Task[Ending]] = set()
        try:
            done, _ = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
            ending = next(job for job in jobs if job in done).result()
        finally:
            await _stopped(reader, clock)
            try:
                await self._session.aclose()
            finally:
                await self._say_goodbye(writer, ending_s=0.0 if reader in done else _GOODBYE_S)
        if ending.limit is not None:
            hit(ending.limit)
        return ending

    async def _say_goodbye(self, writer: "asyncio.Task[Ending]", *, ending_s: float) -> None:
        """Let the last events leave, if there is anyone to read them."""
        self._outbox.close()
        await asyncio.wait((writer,), timeout=ending_s)
        await _stopped(writer)

    async def _read(self) -> Ending:
        self._session.begin()
        while (frame := await self._socket.receive()) is not None:
            self._last_event_s = asyncio.get_running_loop().time()
            await self._answer(frame)
        return Ending()

    async def _answer(self, frame: str | bytes) -> None:
        try:
            await self._session.handle(decode_client_event(self._checked(frame)))
        except RealtimeError as problem:
            self._refuse(problem, frame)
        except Exception as error:
            log.exception("an event could not be served")
            message = f"the server failed to serve this event: {type(error).__name__}"
            self._refuse(RealtimeError("internal_error", message, kind="server_error"), frame)

    def _refuse(self, problem: RealtimeError, frame: str | bytes) -> None:
        readable = isinstance(frame, str) and not self._too_large(frame)
        self._outbox.put(out.error(problem, event_id_of(frame) if readable else None))

    def _checked(self, frame: str | bytes) -> str:
        if isinstance(frame, bytes):
            raise RealtimeError("invalid_event", "binary frames are not events; send text frames")
        if self._too_large(frame):
            limit = self._limits.max_message_bytes
            message = f"an event may have at most {limit} bytes; send it in parts"
            raise exceeded("max_message_bytes", "message_too_large", message)
        return frame

    def _too_large(self, frame: str) -> bool:
        limit = self._limits.max_message_bytes
        return len(frame) > limit or (len(frame) * 4 > limit and _bytes(frame) > limit)

    async def _expire(self) -> Ending:
        """End the session when it is idle too long, or too old."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self._limits.max_session_s
        while True:
            if self._session.answering:
                self._last_event_s = loop.time()
            idle_end_s = self._last_event_s + self._limits.max_idle_s
            if loop.time() >= end_s:
                return self._expired("max_session_s", "it was open for as long as one may be")
            if loop.time() >= idle_end_s:
                return self._expired("max_idle_s", "nothing was sent or asked for too long")
            await asyncio.sleep(min(end_s, idle_end_s) - loop.time())

    def _expired(self, limit: str, why: str) -> Ending:
        message = f"your session has ended: {why} ({limit})"
        self._outbox.put(out.error(RealtimeError("session_expired", message), None))
        return Ending(POLICY_VIOLATION, message, limit)


def _bytes(frame: str) -> int:
    return len(frame.encode(errors="surrogatepass"))


async def _stopped(*tasks: "asyncio.Task[Ending]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
