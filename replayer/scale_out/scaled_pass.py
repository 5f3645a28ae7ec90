"""One pass sent by a crew: to each worker its share of one schedule, and one run of all shares."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from s2l.replayer.pass_runner import Sink
from s2l.replayer.passes import Pass
from s2l.replayer.record import RequestRecord
from s2l.replayer.scale_out.crew import ANSWER_S, Crew, WorkerLost
from s2l.replayer.scale_out.journal import JournalReader
from s2l.replayer.scale_out.share import Share
from s2l.replayer.scale_out.worker import Report

POLL_S: Final = 0.25


@dataclass(slots=True)
class ScaledPass:
    """One pass under way on all workers of a crew.

    ``start_ns`` are, by worker, the run's start on the clock of its machine. ``lost`` says what
    became of the workers that have died; those that die here are added. ``on_over`` is called once
    all are through.
    """

    todo: Pass
    crew: Crew
    sink: Sink
    start_ns: list[int]
    start_us: int
    journals: Mapping[int, JournalReader | None] = field(default_factory=dict)
    lost: dict[int, str] = field(default_factory=dict)
    on_over: Callable[[], Awaitable[None]] | None = None
    closed_loop: bool = False
    cancel_us: npt.NDArray[np.int64] | None = None
    shares: list[Share] = field(default_factory=list)

    def __post_init__(self) -> None:
        every = len(self.crew)
        parts = (self.todo.slice_for(worker, every) for worker in range(every))
        self.shares = [Share(part, every, self.start_us) for part in parts]

    @property
    def started(self) -> int:
        """Requests that were started, as far as is known."""
        return sum(share.started for share in self.shares)

    @property
    def in_flight(self) -> int:
        """Requests under way."""
        return sum(share.in_flight for share in self.shares)

    @property
    def server_gone(self) -> bool:
        """Whether the server refused one connection after another."""
        return any(share.server_gone for share in self.shares)

    async def run(self) -> None:
        """Replay to the end; cancelling it stops all workers and takes what they have."""
        living = (worker for worker in range(len(self.crew)) if worker not in self.lost)
        courses = [asyncio.create_task(self._course(worker)) for worker in living]
        try:
            await asyncio.shield(asyncio.gather(*courses))
        except BaseException:
            self.stop()
            await asyncio.gather(*courses, return_exceptions=True)
            raise
        finally:
            if self.on_over is not None:
                await self.on_over()

    def drain(self) -> None:
        """Start nothing more; what is under way goes on to its end."""
        self._tell("drain")

    def stop(self) -> None:
        """End at once."""
        self._tell("stop")

    def unsent(self) -> Iterator[RequestRecord]:
        """Requests that were never started."""
        for share in self.shares:
            yield from share.todo.records(self.start_us, share.started)

    async def _course(self, worker: int) -> None:
        """Have a worker begin, and fetch what it has finished until it is through, or dead."""
        try:
            await asyncio.to_thread(self._begin, worker)
            while not await asyncio.to_thread(self._fetch, worker):
                await asyncio.sleep(POLL_S)
        except WorkerLost as error:
            self.lost[worker] = str(error)
            await asyncio.to_thread(self._give_up, worker, str(error))

    def _begin(self, worker: int) -> None:
        cancel_us = None if self.cancel_us is None else self.cancel_us[worker :: len(self.crew)]
        args = (self.todo.run_id, self.todo.rate, cancel_us, self.start_ns[worker], self.start_us)
        self.crew.call(worker, "begin", *args, within_s=ANSWER_S)

    def _fetch(self, worker: int) -> bool:
        """Take what came since the last time; whether that was all."""
        report: Report = self.crew.call(worker, "report", within_s=ANSWER_S)
        records, samples = self.shares[worker].take(report), report.parcel.samples
        if records or samples:
            self.sink.put(records, samples)
        return report.over

    def _give_up(self, worker: int, why: str) -> None:
        if records := self.shares[worker].give_up(why, self.journals.get(worker)):
            self.sink.put(records, [])

    def _tell(self, method: str) -> None:
        loop = asyncio.get_running_loop()
        for worker in range(len(self.crew)):
            if worker not in self.lost:
                loop.run_in_executor(None, self._call, worker, method)

    def _call(self, worker: int, method: str) -> Any:
        try:
            return self.crew.call(worker, method, within_s=ANSWER_S)
        except WorkerLost:
            return None  # the one that follows it sees it, too
