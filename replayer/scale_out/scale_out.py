"""A crew made ready for a run: hired, its clocks compared, its requests encoded."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from s2l.replayer.pacer import Pacer
from s2l.replayer.pass_runner import Sink
from s2l.replayer.passes import Pass
from s2l.replayer.plan import Plan
from s2l.replayer.run import Finding
from s2l.replayer.scale_out.clock_offset import ClockOffset, measure_offset
from s2l.replayer.scale_out.crew import ANSWER_S, Crew, WorkerLost
from s2l.replayer.scale_out.journal import JournalReader
from s2l.replayer.scale_out.scaled_pass import POLL_S, ScaledPass
from s2l.replayer.scale_out.worker import Assignment, ReplayWorker, WorkerSpec
from s2l.replayer.sender import AHEAD
from s2l.replayer.validity import DEGRADED, INVALID, LAG_DEGRADED_S, LAG_INVALID_S, NOTE


@dataclass(slots=True)
class ScaleOut:
    """The workers of one run. ``answer_s`` is how long an answer takes, by which they open
    connections ahead."""

    crew: Crew
    spec: WorkerSpec
    lead_us: int = 500_000
    answer_s: float = 0.0
    offsets: list[ClockOffset] = field(default_factory=list)
    _error_ns: int = 0
    _passes: list[ScaledPass] = field(default_factory=list)
    _journals: dict[int, JournalReader | None] = field(default_factory=dict)
    _lost: dict[int, str] = field(default_factory=dict)

    async def hire(self) -> None:
        """Start the workers and let them connect. Raises WorkerLost, ServingError."""
        await asyncio.to_thread(self.crew.hire, ReplayWorker, self.spec)
        await self._each(self._connect)

    async def prepare(self, plan: Plan, delivery: str, answer_at: str | None) -> None:
        """Have the requests of a pass encoded by all, and their clocks compared with ours. Once
        one pass was sent, a worker that has died sends nothing of the others.

        Raises:
            WorkerLost: one has died before anything was sent.
            PlanError: one may not open as many files as its share takes.
        """
        shared = await asyncio.to_thread(self.crew.put, plan)
        workers, answer_us = len(self.crew), round(self.answer_s * AHEAD * 1e6)

        def ready(worker: int) -> None:
            task = Assignment(delivery, answer_at, worker, workers, answer_us)
            try:
                self.crew.call(worker, "prepare", shared, task)
            except WorkerLost as error:
                if not self._passes:
                    raise
                self._lost[worker] = str(error)

        await self._each(ready)
        self.offsets = await self._measured()
        self._note_errors(offset.error_ns for offset in self.offsets)

    def sender(
        self,
        todo: Pass,
        sink: Sink,
        pacer: Pacer,
        *,
        start_us: int,
        cancel_us: npt.NDArray[np.int64] | None,
    ) -> ScaledPass:
        """The pass that was prepared, to be sent by all workers."""
        self._passes.append(
            ScaledPass(
                todo,
                self.crew,
                sink,
                # The run's start, on the clocks of the workers.
                [pacer.start_ns + offset.offset_ns for offset in self.offsets],
                start_us,
                journals=self._journals,
                lost=self._lost,
                on_over=self._look_for_drift,
                closed_loop=self.spec.options.concurrency is not None,
                cancel_us=cancel_us,
            )
        )
        return self._passes[-1]

    def findings(self) -> list[Finding]:
        """How well the clocks agree, and which workers died."""
        return [self._clocks(), *self._losses()]

    def _losses(self) -> Iterator[Finding]:
        for worker, text in self._lost.items():
            failed = sum(one.shares[worker].failed for one in self._passes)
            text = f"{text}; {failed} requests that it had begun are without an answer"
            if self._journals.get(worker) is None:
                text += f", and what it sent in its last {POLL_S:g} s is not known"
            yield Finding(check="worker_lost", severity=DEGRADED, text=text)

    def _clocks(self) -> Finding:
        """As the lag of one client: clocks that are further apart than that blur the run."""
        error_s = self._error_ns / 1e9
        text = f"{len(self.crew)} workers sent, their clocks within {error_s * 1e3:.2f} ms"
        for severity, limit_s in ((INVALID, LAG_INVALID_S), (DEGRADED, LAG_DEGRADED_S)):
            if error_s > limit_s:
                text = f"{text} (limit {limit_s * 1e3:.0f} ms)"
                return Finding(check="clocks", severity=severity, text=text)
        return Finding(check="clocks", severity=NOTE, text=text)

    def _connect(self, worker: int) -> None:
        self._journals[worker] = JournalReader.at(self.crew.call(worker, "connect"))

    async def _look_for_drift(self) -> None:
        """A clock that has moved against ours during a pass was wrong by as much in the end."""
        after = await self._measured()
        self._note_errors(
            abs(now.offset_ns - used.offset_ns) + now.error_ns
            for now, used in zip(after, self.offsets, strict=True)
        )

    def _note_errors(self, errors_ns: Iterable[int]) -> None:
        self._error_ns = max(self._error_ns, *errors_ns)

    async def _measured(self) -> list[ClockOffset]:
        # One after the other: a clock is best read while nothing else is asked.
        return [await asyncio.to_thread(self._offset, n) for n in range(len(self.crew))]

    def _offset(self, worker: int) -> ClockOffset:
        """Now, or as it was when a worker that is dead was asked last."""

        def now_ns() -> int:
            told: int = self.crew.call(worker, "now_ns", within_s=ANSWER_S)
            return told

        with suppress(WorkerLost):
            if worker not in self._lost:
                _, _, boot_id = self.crew.call(worker, "whereabouts", within_s=ANSWER_S)
                return measure_offset(now_ns, boot_id)
        return self.offsets[worker] if self.offsets else ClockOffset(0, 0)

    async def _each(self, work: Callable[[int], Any]) -> None:
        """Have it done for all that live, at once."""
        living = [worker for worker in range(len(self.crew)) if worker not in self._lost]
        threads = ThreadPoolExecutor(len(self.crew))
        try:
            loop = asyncio.get_running_loop()
            jobs = [loop.run_in_executor(threads, work, worker) for worker in living]
            done = await asyncio.gather(*jobs, return_exceptions=True)
        finally:
            threads.shutdown(wait=False)  # waiting here would keep the event loop
        for error in done:
            if isinstance(error, BaseException):
                raise error
