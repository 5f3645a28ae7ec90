"""One pass sent by a crew: to each worker its share of one schedule, and one run of all shares."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from s2l.replayer.pass_runner import Sink
from s2l.replayer.passes import Pass
from s2l.replayer.record import RequestRecord
from s2l.replayer.scale_out.crew import Crew, WorkerLost
from s2l.replayer.scale_out.worker import Report
from s2l.replayer.scale_out.worker_log import unpacked

POLL_S: Final = 0.25
LOST: Final = "worker_lost"
"""The error type of a request whose sender died before the answer was complete, or before what
came of it was fetched."""


@dataclass(slots=True)
class Share:
    """What one worker sends, and how far it is; ``done`` marks the records that came back."""

    todo: Pass
    done: npt.NDArray[np.bool_]
    started: int = 0
    in_flight: int = 0
    server_gone: bool = False
    lost: str | None = None


@dataclass(slots=True)
class ScaledPass:
    """One pass under way on all workers of a crew.

    ``start_ns`` are, by worker, the run's start on the clock of its machine.
    """

    todo: Pass
    crew: Crew
    sink: Sink
    start_ns: list[int]
    start_us: int
    closed_loop: bool = False
    cancel_us: npt.NDArray[np.int64] | None = None
    shares: list[Share] = field(default_factory=list)

    def __post_init__(self) -> None:
        parts = (self.todo.slice_for(n, len(self.crew)) for n in range(len(self.crew)))
        self.shares = [Share(part, np.zeros(len(part), dtype=np.bool_)) for part in parts]

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

    @property
    def lost(self) -> list[str]:
        """What became of the workers that died."""
        return [share.lost for share in self.shares if share.lost is not None]

    async def run(self) -> None:
        """Replay to the end; cancelling it stops all workers and takes what they have."""
        try:
            begun = (asyncio.to_thread(self._begin, n) for n in range(len(self.shares)))
            await asyncio.gather(*begun)
            await self._follow_all()
        except asyncio.CancelledError:
            self.stop()
            await self._follow_all()
            raise

    def drain(self) -> None:
        """Start nothing more; what is under way goes on to its end."""
        self._tell("drain")

    def stop(self) -> None:
        """End at once."""
        self._tell("stop")

    def unsent(self) -> Iterator[RequestRecord]:
        """Requests that were never started; those of a lost worker count as sent as far as it
        had reported."""
        for share in self.shares:
            yield from share.todo.records(self.start_us, share.started)

    def _begin(self, worker: int) -> None:
        share = self.shares[worker]
        every = len(self.crew)
        cancel_us = None if self.cancel_us is None else self.cancel_us[worker::every]
        args = (share.todo, every, cancel_us, self.start_ns[worker], self.start_us)
        try:
            self.crew.call(worker, "begin", *args)
        except WorkerLost as error:
            share.lost = str(error)

    async def _follow_all(self) -> None:
        await asyncio.gather(*(self._follow(n) for n in range(len(self.shares))))

    async def _follow(self, worker: int) -> None:
        """Fetch what a worker has finished until it is through, or dead."""
        share = self.shares[worker]
        while share.lost is None:
            try:
                report: Report = await asyncio.to_thread(self.crew.call, worker, "report")
            except WorkerLost as error:
                share.lost = str(error)
                self._give_up(share)
                return
            await asyncio.to_thread(self._take, share, report)
            if report.over:
                return
            await asyncio.sleep(POLL_S)

    def _take(self, share: Share, report: Report) -> None:
        share.started, share.in_flight = report.started, report.in_flight
        share.server_gone = report.server_gone
        records, samples = unpacked(report.log, self.todo)
        for record in records:
            share.done[(record.number - (share.todo.worker or 0)) // len(self.crew)] = True
        if records or samples:
            self.sink.put(records, samples)

    def _give_up(self, share: Share) -> None:
        """What a dead worker had started and not handed over has failed."""
        share.in_flight = 0
        failed = []
        for index in np.flatnonzero(~share.done[: share.started]).tolist():
            record = share.todo.record(index, self.start_us)
            record.error_type, record.error = LOST, share.lost
            failed.append(record)
        if failed:
            self.sink.put(failed, [])

    def _tell(self, method: str) -> None:
        for worker, share in enumerate(self.shares):
            if share.lost is None:
                asyncio.get_running_loop().run_in_executor(None, self._call, worker, method)

    def _call(self, worker: int, method: str) -> Any:
        try:
            return self.crew.call(worker, method)
        except WorkerLost:
            return None  # the one that follows it sees it, too
