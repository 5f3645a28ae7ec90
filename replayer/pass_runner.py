"""Runs one pass with all that belongs to measuring it: the client watched, records handed on."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from s2l.replayer.garbage import GarbageControl
from s2l.replayer.monitor import ClientSample, Monitor
from s2l.replayer.options import ReplayOptions
from s2l.replayer.pacer import Pacer
from s2l.replayer.passes import Pass
from s2l.replayer.record import RequestRecord
from s2l.replayer.replayer import Replayer
from s2l.serving_adapter.base import PreparedRequest

HAND_OVER: Final = 64
"""Records that are handed to the writer at once: waking it takes time from the event loop."""
HAND_OVER_SAMPLES: Final = 10
"""After so many samples of the client, half a second, it is handed what there is."""
GAP_US: Final = 3_000
"""Time with nothing to send that is a gap for garbage collection."""


class Sink(Protocol):
    """Where finished records and samples of the client go."""

    def put(self, records: list[RequestRecord], samples: list[ClientSample]) -> None:
        """Take them; the caller keeps no hand on the lists."""


class PassRunner:
    """One pass under way; what is finished goes to ``sink``. It is a ``Sender``."""

    def __init__(
        self,
        todo: Pass,
        requests: Sequence[PreparedRequest],
        pacer: Pacer,
        sink: Sink,
        options: ReplayOptions,
        *,
        start_us: int,
        cancel_us: npt.NDArray[np.int64] | None = None,
        on_start: Callable[[int], None] | None = None,
        on_end: Callable[[RequestRecord], None] | None = None,
    ) -> None:
        self._pacer, self._sink = pacer, sink
        self._on_end = on_end
        self._records: list[RequestRecord] = []
        self._samples: list[ClientSample] = []
        self._garbage = GarbageControl()
        self._worker = todo.worker
        duration_us = None if options.duration_s is None else round(options.duration_s * 1e6)
        self.replayer = Replayer(
            todo,
            requests,
            pacer,
            self._take,
            start_us=start_us,
            limits=options.limits(),
            concurrency=options.concurrency,
            max_concurrency=options.max_concurrency,
            duration_us=duration_us,
            cancel_us=cancel_us,
            on_start=on_start,
        )

    @property
    def todo(self) -> Pass:
        """What is sent."""
        return self.replayer.todo

    @property
    def start_us(self) -> int:
        """When the pass begins, in the run's time."""
        return self.replayer.start_us

    @property
    def closed_loop(self) -> bool:
        """Whether requests start when others end, and not by a schedule."""
        return self.replayer.closed_loop

    @property
    def started(self) -> int:
        """Requests started so far."""
        return self.replayer.started

    @property
    def in_flight(self) -> int:
        """Requests under way."""
        return self.replayer.in_flight

    @property
    def server_gone(self) -> bool:
        """Whether the server refused one connection after another."""
        return self.replayer.server_gone

    def drain(self) -> None:
        """Start nothing more; what is under way goes on to its end."""
        self.replayer.drain()

    def stop(self) -> None:
        """End at once."""
        self.replayer.stop()

    def unsent(self) -> Iterator[RequestRecord]:
        """Requests that were never started."""
        return self.todo.records(self.start_us, self.started)

    async def run(self) -> None:
        """Replay to the end, however it ends."""
        monitor = Monitor(self._take_sample, self._garbage, self._worker)
        with self._garbage:
            try:
                monitor.start(self._pacer, self.todo, lambda: self.in_flight)
                await self.replayer.run()
            finally:
                monitor.stop()
                self.hand_over()

    def _take(self, record: RequestRecord) -> None:
        self._records.append(record)
        if len(self._records) >= HAND_OVER:
            self.hand_over()
        if self._on_end is not None:
            self._on_end(record)

    def _take_sample(self, sample: ClientSample) -> None:
        self._samples.append(sample)
        if len(self._samples) >= HAND_OVER_SAMPLES:
            self.hand_over()
        if (self.replayer.idle_us() or 0) > GAP_US:
            self._garbage.use_gap()

    def hand_over(self) -> None:
        """Give the sink what is finished; called on the event loop."""
        finished = self._records, self._samples
        self._records, self._samples = [], []
        self._sink.put(*finished)
