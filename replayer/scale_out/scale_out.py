"""A crew made ready for a run: hired, its clocks compared, its requests encoded."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from s2l.replayer.pacer import Pacer
from s2l.replayer.pass_runner import Sink
from s2l.replayer.passes import Pass
from s2l.replayer.plan import Plan
from s2l.replayer.run import Finding
from s2l.replayer.scale_out.clock_offset import ClockOffset, measure_offset
from s2l.replayer.scale_out.crew import Crew
from s2l.replayer.scale_out.scaled_pass import ScaledPass
from s2l.replayer.scale_out.worker import ReplayWorker, WorkerSpec

ALIGNED_WITHIN_S: Final = 0.005
"""As the lag of one client: clocks that are further apart than this blur the run."""


@dataclass(slots=True)
class ScaleOut:
    """The workers of one run; ``settings`` are what the adapter is made with."""

    crew: Crew
    spec: WorkerSpec
    offsets: list[ClockOffset] = field(default_factory=list)
    _error_ns: int = 0
    _passes: list[ScaledPass] = field(default_factory=list)

    lead_us: int = 500_000

    async def hire(self) -> None:
        """Start the workers and let them connect. Raises WorkerLost, ServingError."""
        await asyncio.to_thread(self.crew.hire, ReplayWorker, self.spec)
        await self._each(lambda n: self.crew.call(n, "connect"))

    async def prepare(self, plan: Plan, delivery: str, answer_at: str | None) -> None:
        """Have the requests of a pass encoded by all, and their clocks compared with ours.

        Raises:
            WorkerLost: one has died before anything was sent.
        """
        shared = await asyncio.to_thread(self.crew.put, plan)
        await self._each(lambda n: self.crew.call(n, "prepare", shared, delivery, answer_at))
        before = self.offsets
        # One after the other: a clock is best read while nothing else is asked.
        self.offsets = [await asyncio.to_thread(self._offset, n) for n in range(len(self.crew))]
        drifts_ns = [
            abs(a.offset_ns - b.offset_ns) for a, b in zip(before, self.offsets, strict=False)
        ]
        errors_ns = [offset.error_ns for offset in self.offsets]
        self._error_ns = max([self._error_ns, *errors_ns, *drifts_ns])

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
                closed_loop=self.spec.options.concurrency is not None,
                cancel_us=cancel_us,
            )
        )
        return self._passes[-1]

    def findings(self) -> list[Finding]:
        """How well the clocks agree, and which workers died."""
        lost = dict.fromkeys(text for one in self._passes for text in one.lost)
        return [
            self._clocks(),
            *(Finding(check="worker_lost", severity="degraded", text=text) for text in lost),
        ]

    def _clocks(self) -> Finding:
        error_s = self._error_ns / 1e9
        text = f"{len(self.crew)} workers sent, their clocks within {error_s * 1e3:.2f} ms"
        if error_s > ALIGNED_WITHIN_S:
            text = f"{text} (limit {ALIGNED_WITHIN_S * 1e3:.0f} ms)"
            return Finding(check="clocks", severity="degraded", text=text)
        return Finding(check="clocks", severity="note", text=text)

    def _offset(self, worker: int) -> ClockOffset:
        _, _, boot_id = self.crew.call(worker, "whereabouts")
        return measure_offset(lambda: self.crew.call(worker, "now_ns"), boot_id)

    async def _each(self, work: Callable[[int], Any]) -> None:
        with ThreadPoolExecutor(len(self.crew)) as threads:
            loop = asyncio.get_running_loop()
            jobs = [loop.run_in_executor(threads, work, n) for n in range(len(self.crew))]
            await asyncio.gather(*jobs)
