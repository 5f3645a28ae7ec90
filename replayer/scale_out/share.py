"""What one worker sends of a pass, and how far it is."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from s2l.replayer.passes import Pass
from s2l.replayer.record import RequestRecord
from s2l.replayer.scale_out.journal import JournalReader
from s2l.replayer.scale_out.worker import Report
from s2l.replayer.scale_out.worker_log import unpacked

LOST: Final = "worker_lost"
"""The error type of a request whose sender died before the answer was complete, or, on another
machine, before what came of it was fetched."""


@dataclass(slots=True)
class Share:
    """Every ``every``-th request of a pass that begins at ``start_us``."""

    todo: Pass
    every: int
    start_us: int
    started: int = 0
    in_flight: int = 0
    server_gone: bool = False
    failed: int = 0
    """Requests that were under way when the worker died."""
    _came: npt.NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self._came = np.zeros(len(self.todo), dtype=np.bool_)

    def take(self, report: Report) -> list[RequestRecord]:
        """The records of a report."""
        self.started, self.in_flight = report.started, report.in_flight
        self.server_gone = report.server_gone
        return self._new(b"".join(report.parcel.pieces))

    def give_up(self, why: str, journal: JournalReader | None) -> list[RequestRecord]:
        """The records of a worker that is dead: those that it had finished, where its journal can
        be read, and those that it had started, which have failed."""
        finished = []
        if journal is not None:
            self.started = max(self.started, journal.started)
            finished = self._new(journal.pieces())
        failed = [self._failed(index, why) for index in self._missing()]
        self.in_flight, self.failed = 0, len(failed)
        return finished + failed

    def _new(self, pieces: bytes) -> list[RequestRecord]:
        """Those that did not come before: a journal keeps them a little longer than needed."""
        records = []
        for record in unpacked(pieces, self.todo):
            index = (record.number - (self.todo.worker or 0)) // self.every
            if not self._came[index]:
                self._came[index] = True
                records.append(record)
        return records

    def _missing(self) -> list[int]:
        found: list[int] = np.flatnonzero(~self._came[: self.started]).tolist()
        return found

    def _failed(self, index: int, why: str) -> RequestRecord:
        record = self.todo.record(index, self.start_us)
        record.error_type, record.error = LOST, why
        return record
