"""Watches the server while it is measured: its ``/metrics``, at an interval, in a thread."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

import pyarrow as pa

from s2l.replayer.run import SERVER_SCHEMA
from s2l.replayer.server_http import TIMEOUT_S, ServerHttp
from s2l.replayer.server_metrics import read_metrics
from s2l.serving_adapter.base import ServingError

MOST_SAMPLES: Final = 4_000
"""When there are more, every second one is dropped and the interval doubled."""

_METRICS: Final = "/metrics"
_ROWS_PER_BATCH: Final = 10_000


@dataclass(frozen=True, slots=True)
class ServerSample:
    """What the server said at ``time_us``, by the names of ``SERVER_SCHEMA``."""

    delivery: str
    answer_at: str | None
    time_us: int
    values: dict[str, float]


class ServerMonitor:
    """Samples one server, first when it is started and last when it is stopped.

    ``interval_s`` is the one now: a run of many hours doubles it, so that memory stays bounded.
    """

    def __init__(self, url: str, interval_s: float, api_key: str | None = None) -> None:
        if not interval_s > 0:
            raise ValueError(f"interval_s is {interval_s}; it must be above 0")
        self.interval_s = interval_s
        self.samples: list[ServerSample] = []
        self._http = ServerHttp(url, api_key)
        self._url = url
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._scrapes = 0
        self._failed = 0
        self._last_failure = ""
        self._not_offered: str | None = None

    def start(self, now_us: Callable[[], int], delivery: str, answer_at: str | None = None) -> None:
        """Sample from now on, by this clock, until ``stop``."""
        if self._not_offered is not None:
            return
        self._stopping.clear()
        self._thread = threading.Thread(
            target=self._watch,
            args=(now_us, delivery, answer_at),
            name="server-monitor",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """Sample once more and end. It waits for that: no longer than a request may take."""
        if self._thread is None:
            return
        self._stopping.set()
        self._thread.join(3 * TIMEOUT_S)
        self._thread = None
        self._http.close()

    @property
    def notes(self) -> list[str]:
        """What a reader of the samples has to know; one line at most, none where all is well."""
        if self._not_offered is not None:
            return [f"no server metrics: {self._not_offered}"]
        if not self._failed:
            return []
        failed = f"{self._failed} of {self._scrapes} samples failed"
        return [f"server metrics: {failed} ({self._last_failure})"]

    def rows(self) -> Iterator[tuple[str, int, str, float, str | None]]:
        """The rows of ``SERVER_SCHEMA``: delivery, time in µs, name, value, ``answer_at``."""
        for sample in self.samples:
            for name, value in sample.values.items():
                yield sample.delivery, sample.time_us, name, value, sample.answer_at

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches of ``SERVER_SCHEMA``."""
        rows = self.rows()
        while some := list(islice(rows, _ROWS_PER_BATCH)):
            columns = zip(*some, strict=True)
            yield pa.RecordBatch.from_arrays(
                [pa.array(c, f.type) for c, f in zip(columns, SERVER_SCHEMA, strict=True)],
                schema=SERVER_SCHEMA,
            )

    def _watch(self, now_us: Callable[[], int], delivery: str, answer_at: str | None) -> None:
        due_s = time.monotonic()
        while self._not_offered is None:
            last = self._stopping.is_set()
            self._sample(now_us, delivery, answer_at)
            if last:
                return
            due_s = max(due_s + self.interval_s, time.monotonic())
            self._stopping.wait(due_s - time.monotonic())

    def _sample(self, now_us: Callable[[], int], delivery: str, answer_at: str | None) -> None:
        self._scrapes += 1
        before_us = now_us()
        try:
            status, page = self._http.ask("GET", _METRICS)
            values = read_metrics(page) if status == 200 else {}
        except (ServingError, ValueError) as error:
            self._failed += 1
            self._last_failure = " ".join(str(error).split())
            return
        if status != 200 or not values:
            found = "no metrics that we know" if status == 200 else f"HTTP {status}"
            self._refused(f"{self._url}{_METRICS}: {found}")
            return
        # What it says is of a moment between request and answer.
        at_us = (before_us + now_us()) // 2
        self.samples.append(ServerSample(delivery, answer_at, at_us, values))
        if len(self.samples) > MOST_SAMPLES:
            del self.samples[1::2]
            self.interval_s *= 2

    def _refused(self, why: str) -> None:
        """A server that never had them is not asked again; one that had them is."""
        if not self.samples:
            self._not_offered = why
            return
        self._failed += 1
        self._last_failure = why
