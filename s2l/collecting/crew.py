"""A capture under way on all workers of a crew, seen from the one that planned it."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from s2l.collecting.parts import fetch_part, recovered_part
from s2l.collecting.watch import Job
from s2l.collecting.worker import CaptureWorker, Report
from s2l.collectors.collect import Progress
from s2l.drain import interrupts
from s2l.progress import say
from s2l.replayer.scale_out.clock_offset import ClockOffset, measure_offset
from s2l.replayer.scale_out.crew import Crew, WorkerLost
from s2l.workloads.trace import Trace

POLL_S: Final = 0.25
_NOTHING: Final = Report(Progress(0, 0, {}), {}, over=False)

T = TypeVar("T")
Show = Callable[[Progress], None]


@dataclass(slots=True)
class Share:
    """What one worker captures: how far it is, and its part once it is through.

    ``lost`` says what became of a worker that died, or of its capture, which ``error`` ended;
    ``is_here``: its part is written into a folder that we see.
    """

    name: str
    report: Report = _NOTHING
    lost: str | None = None
    error: Exception | None = None
    is_here: bool = False
    part: Trace | None = None
    result: Any = None


@dataclass(slots=True)
class ScaledCapture:
    """Hires, begins, follows, and gathers the parts in ``folder``.

    ``all_or_nothing``: a part is of no use without the others, so that nothing is drained, and one
    lost worker stops all.
    """

    crew: Crew
    folder: Path
    token: str
    all_or_nothing: bool = False
    shares: list[Share] = field(default_factory=list)
    interrupted: bool = False
    started_utc: str = ""
    clock_error_us: int = 0
    _offsets: list[ClockOffset] = field(default_factory=list)
    _shown: Progress | None = None

    @property
    def lost(self) -> list[str]:
        """What became of workers that did not come to their end."""
        return [share.lost for share in self.shares if share.lost is not None]

    def waiting(self) -> Mapping[str, int]:
        """How many requests wait for which site, at all workers."""
        return sum((Counter(share.report.waiting) for share in self.shares), Counter[str]())

    async def prepare(self, jobs: Sequence[Job]) -> None:
        """Start the workers, and let each open what its job needs.

        Raises:
            WorkerLost: one died. And what opening raises.
        """
        await _to_its_end(asyncio.to_thread(self.crew.hire, CaptureWorker, self.folder, self.token))
        self.shares = [Share(f"worker-{number}") for number in range(len(jobs))]

        def open_one(number: int) -> None:
            share = self.shares[number]
            share.is_here = self.crew.call(number, "prepare", share.name, jobs[number])
            share.report = self.crew.call(number, "report")

        await self._each(open_one)
        self._offsets = await self._measured()

    async def run(self, show: Show) -> None:
        """Capture to the end; Ctrl-C drains all workers, once more stops them."""
        self.started_utc = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        start_ns = time.monotonic_ns()
        await self._each(lambda n: self._tell(n, "begin", start_ns + self._offsets[n].offset_ns))
        stop = partial(self._tell_all, "stop")
        with interrupts(self._drain, stop):
            follow = (self._follow(number, show) for number in range(len(self.shares)))
            await asyncio.gather(*follow)
        await self._note_clocks()

    async def parts(self) -> list[Trace]:
        """The parts that there are, fetched and checked, in the order of the workers.

        Raises:
            TraceError: one is not as its worker wrote it, or cannot be written here.
        """
        for number in range(len(self.shares)):
            await asyncio.to_thread(self._gather, number)
        return [share.part for share in self.shares if share.part is not None]

    def _gather(self, number: int) -> None:
        share, path = self.shares[number], self.folder / self.shares[number].name
        try:
            share.part = fetch_part(self.crew, number, path, is_here=share.is_here)
            if share.lost is None:
                share.result = self.crew.call(number, "result")
        except WorkerLost as error:
            share.lost = share.lost or str(error)
            share.part = recovered_part(path) if share.is_here else None

    async def _follow(self, number: int, show: Show) -> None:
        """Look how a worker is until it is through, or lost."""
        share = self.shares[number]
        while share.lost is None:
            try:
                share.report = await asyncio.to_thread(self.crew.call, number, "report")
            except WorkerLost as error:
                share.lost = str(error)
            except Exception as error:
                share.error, share.lost = error, f"{self.crew.name(number)}: {error}"
            if share.lost is not None and self.all_or_nothing:
                self._tell_all("stop")
            self._show(show)
            if share.report.over:
                return
            await asyncio.sleep(POLL_S)

    def _show(self, show: Show) -> None:
        if (state := self._progress()) != self._shown:
            self._shown = state
            show(state)

    def _progress(self) -> Progress:
        states = [share.report.progress for share in self.shares]
        failures = sum((Counter(state.failures) for state in states), Counter[str]())
        return Progress(
            sum(state.done for state in states),
            sum(state.total for state in states),
            failures,
            sum(state.texts for state in states),
        )

    def _drain(self) -> None:
        self.interrupted = True
        if self.all_or_nothing:
            self._tell_all("stop")
            return
        say("stopping: queries under way are finished first; Ctrl-C again stops at once")
        self._tell_all("drain")

    def _tell_all(self, method: str) -> None:
        for number in range(len(self.shares)):
            asyncio.get_running_loop().run_in_executor(None, self._tell, number, method)

    def _tell(self, number: int, method: str, *args: Any) -> None:
        try:
            self.crew.call(number, method, *args)
        except WorkerLost as error:
            self.shares[number].lost = str(error)

    async def _note_clocks(self) -> None:
        """How far apart the clocks were at most: their drift meanwhile counts, too."""
        before, self._offsets = self._offsets, await self._measured()
        drifts = (
            abs(a.offset_ns - b.offset_ns) for a, b in zip(before, self._offsets, strict=True)
        )
        errors = (offset.error_ns for offset in (*before, *self._offsets))
        self.clock_error_us = -(-max(*drifts, *errors) // 1000)

    async def _measured(self) -> list[ClockOffset]:
        # One after the other: a clock is best read while nothing else is asked.
        return [await asyncio.to_thread(self._offset, n) for n in range(len(self.crew))]

    def _offset(self, number: int) -> ClockOffset:
        try:
            _, _, boot_id = self.crew.call(number, "whereabouts")
            return measure_offset(lambda: self.crew.call(number, "now_ns"), boot_id)
        except WorkerLost:
            return self._offsets[number] if self._offsets else ClockOffset(0, 0)

    async def _each(self, work: Callable[[int], T]) -> list[T]:
        with ThreadPoolExecutor(len(self.crew)) as threads:
            loop = asyncio.get_running_loop()
            jobs = [loop.run_in_executor(threads, work, n) for n in range(len(self.crew))]
            return await asyncio.gather(*jobs)


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Where this is cancelled meanwhile, that is heeded afterwards: a crew that is closed while
    a thread still hires for it is started anew by Ray."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
