"""One Realtime session of the mock: the plugin's own code behind an aiohttp WebSocket."""

import asyncio
import time
from typing import Final

from aiohttp import WSMsgType, web

from s2l.serving_adapter.mock.backend import Backend
from s2l.serving_adapter.mock.faults import Fault
from s2l.serving_adapter.mock.openai_format import error_json
from s2l.serving_adapter.mock.request_log import Entry, RequestLog
from s2l.serving_adapter.realtime.admission import Admission
from s2l.serving_adapter.realtime.client import MAX_FRAME_BYTES
from s2l.serving_adapter.realtime.connection import Connection
from s2l.serving_adapter.realtime.handshake import SUBPROTOCOL, wrong_model
from s2l.serving_adapter.realtime.limits import Ending, Limits

_DELTA: Final = '"response.output_text.delta"'
_DONE: Final = '"response.done"'
_QUESTION: Final = '"response.create"'
_HEAD_CHARS: Final = 64
"""An event's type is among its first characters."""
_GARBAGE: Final = '{"type": "response.output_text.delta", '
_LOOK_S: Final = 0.02
_REASON_BYTES: Final = 123
"""What a WebSocket's close frame has room for."""


class RealtimeApi:
    """Serves the sessions of one mock server.

    Of the faults they meet any status, ``drop``, ``hang``, and after their first delta ``cut`` and
    ``garbage``.
    """

    def __init__(self, backend: Backend, admission: Admission, limits: Limits | None) -> None:
        self._backend = backend
        self._admission = admission
        self._limits = limits

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serve one session to its end. Each of its responses is noted in the log, or the session
        itself where it had none."""
        number = next(self._backend.numbers)
        fault = self._backend.options.faults.of(number)
        request_id = request.headers.get("x-request-id", f"{number:016x}")
        outcome = (str(fault.status) if fault.status else fault.kind) if fault else ""
        times = _Times(self._backend.log, number, request_id, outcome)
        try:
            return await self._serve(request, fault, times)
        finally:
            times.session_ended()

    async def _serve(
        self, request: web.Request, fault: Fault | None, times: "_Times"
    ) -> web.StreamResponse:
        socket = web.WebSocketResponse(
            max_msg_size=MAX_FRAME_BYTES, compress=False, protocols=(SUBPROTOCOL,)
        )
        if not socket.can_prepare(request):
            return web.Response(status=426, headers={"upgrade": "websocket", "connection": "close"})
        if refusal := wrong_model(request.query.get("model"), self._backend.engine.info):
            return web.json_response(
                refusal.body(), status=refusal.status, headers={"connection": "close"}
            )
        if fault is not None and fault.status:
            return _refused(fault.status, fault.retry_after_s)
        if fault is not None and fault.kind == "hang":
            return await _never_answered(request)
        if fault is not None and fault.kind == "drop":
            _abort(request)
        await socket.prepare(request)
        frames = _Frames(request, socket, fault.kind if fault else "", times)
        connection = Connection(frames, self._backend.engine, self._admission, self._limits)
        await frames.close(await connection.serve())
        return socket


def _refused(status: int, retry_after_s: int | None) -> web.Response:
    body = error_json("this failure was asked for", "InternalServerError", status)
    headers = {"connection": "close"}
    if retry_after_s is not None:
        headers["retry-after"] = str(retry_after_s)
    return web.Response(status=status, body=body, headers=headers, content_type="application/json")


async def _never_answered(request: web.Request) -> web.Response:
    """Wait until the client is gone, of which nobody tells a handler that does not read."""
    while request.transport is not None:
        await asyncio.sleep(_LOOK_S)
    return web.Response(status=499)


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


class _Times:
    """When the last question of a session came, and when its answer was written."""

    def __init__(self, log: RequestLog, number: int, request_id: str, fault: str) -> None:
        self._log = log
        self._number = number
        self._request_id = request_id
        self._fault = fault
        self._noted = 0
        self._begin()

    def _begin(self) -> None:
        self._asked_ns = time.monotonic_ns()
        self._under_way = False
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        self._tokens = 0

    def asked(self) -> None:
        """A question came in."""
        self._begin()
        self._under_way = True

    def written(self) -> None:
        """A token was written."""
        self._last_ns = time.monotonic_ns()
        self._first_ns = self._first_ns or self._last_ns
        self._tokens += 1

    def answered(self, outcome: str = "ok") -> None:
        """The answer is over."""
        self._under_way = False
        self._noted += 1
        entry = Entry(
            number=self._number,
            request_id=self._request_id,
            endpoint="realtime",
            arrived_ns=self._asked_ns,
            outcome=self._fault or outcome,
            tokens=self._tokens,
            first_ns=self._first_ns,
            last_ns=self._last_ns,
        )
        self._log.add(entry)

    def session_ended(self) -> None:
        """The socket is closed."""
        if self._under_way or not self._noted:
            self.answered("aborted" if self._under_way else "ok")


class _Frames:
    """The session's socket, as the connection wants it."""

    def __init__(
        self, request: web.Request, socket: web.WebSocketResponse, fault: str, times: _Times
    ) -> None:
        self._request = request
        self._socket = socket
        self._fault = fault
        self._times = times
        self._deltas = 0

    async def receive(self) -> str | bytes | None:
        message = await self._socket.receive()
        if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
            return None
        frame: str | bytes = message.data
        if isinstance(frame, str) and _QUESTION in frame:
            self._times.asked()
        return frame

    async def send(self, frame: str) -> None:
        try:
            kind = frame[:_HEAD_CHARS]
            if self._fault and _DELTA in kind:
                await self._spoil()
            await self._socket.send_str(frame)
            if _DELTA in kind:
                self._times.written()
            elif _DONE in kind:
                self._times.answered()
        except (ConnectionError, RuntimeError):
            return  # gone: the receiving side sees it and ends the session

    async def close(self, ending: Ending) -> None:
        """Close it as the session says, if the client has not."""
        reason = ending.reason.encode()[:_REASON_BYTES]
        await self._socket.close(code=ending.code, message=reason)

    async def _spoil(self) -> None:
        self._deltas += 1
        if self._deltas == 2 and self._fault == "cut":
            _abort(self._request)
        elif self._deltas == 2 and self._fault == "garbage":
            await self._socket.send_str(_GARBAGE)
