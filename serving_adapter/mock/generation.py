"""One answer under way: each of its steps is written when it is due."""

import time
from typing import Final

from s2l.serving_adapter.mock.answer import GARBAGE, Answer, failure
from s2l.serving_adapter.mock.backend import Backend
from s2l.serving_adapter.mock.faults import Fault
from s2l.serving_adapter.mock.http_connection import HttpConnection, Request
from s2l.serving_adapter.mock.kv_cache import block_keys
from s2l.serving_adapter.mock.openai_format import DONE, LAST_CHUNK, STREAM_HEAD, chunk
from s2l.serving_adapter.mock.openai_request import Asked
from s2l.serving_adapter.mock.request_log import Entry
from s2l.serving_adapter.mock.scheduler import Job
from s2l.serving_adapter.precise_timer import TimerHandle

_HALF_WAY: Final = frozenset({"cut", "garbage", "error-in-stream"})


class Generation:
    """One request for an answer, from its arrival to its last byte.

    Step i is due ``i * step_ns`` after the first token. ``kind`` is ``completion`` or ``chat``.
    """

    def __init__(
        self,
        backend: Backend,
        connection: HttpConnection,
        request: Request,
        asked: Asked,
        kind: str,
        number: int,
        fault: Fault | None,
    ) -> None:
        self._backend = backend
        self._connection = connection
        self._request = request
        self._stream = asked.stream
        self._request_id = (request.request_id or b"%016x" % number).decode()
        self._fault = fault.kind if fault else ""
        self._fault_delay_ns = round(fault.duration_s * 1e9) if fault else 0
        self._job = self._new_job(asked, number)
        totals = backend.scheduler.totals
        self._answer = Answer(
            asked, self._job, backend.formats[kind], self._request_id, totals, self._fault
        )
        self._steps = self._answer.steps
        self._step_ns = backend.step_ns if asked.stream else self._job.decode_ns
        half_way = asked.stream and self._fault in _HALF_WAY
        self._fault_step = self._steps // 2 if half_way else -1
        self._next = 0
        self._first_written_ns: int | None = None
        self._last_written_ns: int | None = None
        self._handle: TimerHandle | None = None

    def begin(self) -> None:
        """The request has arrived: queue it, and say so to a client that streams."""
        self._connection.exchange = self
        if self._fault == "hang":
            return
        if self._fault == "slow-headers":
            self._begin_slowly()
            return
        if self._stream:
            self._connection.send(STREAM_HEAD)
        self._backend.scheduler.submit(self._job, self._request.arrived_ns)

    def abort(self) -> None:
        """The client is gone: let go of all that the request holds."""
        if self._handle is not None:
            self._handle.cancel()
        self._backend.scheduler.abort(self._job, time.monotonic_ns())
        self._log(self._fault or "aborted")

    def _new_job(self, asked: Asked, number: int) -> Job:
        cache = self._backend.scheduler.cache
        events = -(-asked.output_tokens // self._backend.options.tokens_per_event)
        return Job(
            number=number,
            prompt_tokens=asked.prompt_tokens,
            output_tokens=asked.output_tokens,
            decode_ns=(events - 1) * self._backend.step_ns,
            keys=block_keys(asked.text.split(), cache.block_size, asked.salt)
            if cache.reuse
            else (),
            on_start=self._on_start,
        )

    def _begin_slowly(self) -> None:
        half = len(STREAM_HEAD) // 2
        later_ns = self._request.arrived_ns + self._fault_delay_ns
        if self._stream:
            self._connection.send(STREAM_HEAD[:half])

        def go_on() -> None:
            if self._stream:
                self._connection.send(STREAM_HEAD[half:])
            self._backend.scheduler.submit(self._job, later_ns)

        self._handle = self._backend.timer.call_at_ns(later_ns, go_on)

    def _on_start(self) -> None:
        self._handle = self._backend.timer.call_at_ns(self._job.first_ns, self._fire)

    def _fire(self) -> None:
        """Write what is due, and with it what became due meanwhile."""
        job, first = self._job, self._next
        due_ns = job.first_ns + first * self._step_ns
        if not first:
            self._backend.scheduler.prefilled(job)
        if first == self._fault_step:
            return self._fail(due_ns)
        data = self._answer.step(first)
        self._next = first + 1
        late_ns = time.monotonic_ns() - due_ns
        if late_ns >= self._step_ns and self._next < self._steps:
            data += self._catch_up(late_ns)
        if data:
            self._write(data, first)
        if self._next == self._steps:
            return self._finish(job.last_ns)
        next_ns = job.first_ns + self._next * self._step_ns
        self._handle = self._backend.timer.call_at_ns(next_ns, self._fire)
        return None

    def _catch_up(self, late_ns: int) -> bytes:
        """The steps that are due too, where one is so late."""
        more = late_ns // self._step_ns if self._step_ns else self._steps
        end = min(self._next + more, self._steps)
        if self._next <= self._fault_step < end:
            end = self._fault_step
        first, self._next = self._next, end
        return b"".join(map(self._answer.step, range(first, end)))

    def _write(self, data: bytes, first: int) -> None:
        """Send, and note how late each of the steps from ``first`` to the next one is."""
        self._connection.send(data)
        now_ns = self._last_written_ns = time.monotonic_ns()
        if self._first_written_ns is None:
            self._first_written_ns = now_ns
        late_ns = now_ns - self._job.first_ns
        for step in range(first, self._next):
            self._backend.lateness.add(late_ns - step * self._step_ns)

    def _fail(self, due_ns: int) -> None:
        """Half of the answer is written: do what the fault says."""
        self._fault_step = -1
        if self._fault == "garbage":
            self._connection.send(chunk(GARBAGE))
            return self._fire()
        if self._fault == "error-in-stream":
            self._connection.send(chunk(b"data: %b\n\n" % failure() + DONE) + LAST_CHUNK)
        return self._finish(due_ns)

    def _finish(self, at_ns: int) -> None:
        self._backend.scheduler.finish(self._job, at_ns)
        self._log(self._fault or "ok")
        if self._fault == "cut":
            self._connection.cut()
        self._connection.done()

    def _log(self, outcome: str) -> None:
        job, started = self._job, self._job.start_ns > 0
        entry = Entry(
            number=job.number,
            request_id=self._request_id,
            endpoint=self._answer.format.kind.whole_object,
            arrived_ns=self._request.arrived_ns,
            outcome=outcome,
            prompt_tokens=job.prompt_tokens,
            cached_tokens=job.cached_tokens,
            tokens=self._answer.tokens(self._next),
            start_ns=job.start_ns if started else None,
            first_due_ns=job.first_ns if started and self._stream else None,
            first_ns=self._first_written_ns,
            last_due_ns=job.last_ns if started else None,
            last_ns=self._last_written_ns,
        )
        self._backend.log.add(entry)
