"""Crews without processes: what workers do, and lines and clocks of other machines."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from s2l.replayer.scale_out.crew import WorkerLost


class CrewOfThreads:
    """Workers in this process. ``before`` is called with each call to come; those that are lost
    answer no more."""

    def __init__(self, workers: int, before: Callable[[int, str], None] | None = None) -> None:
        self._workers = workers
        self._before = before or (lambda worker, method: None)
        self.lost: set[int] = set()
        self.objects: list[Any] = []

    def __len__(self) -> int:
        return self._workers

    def hire(self, kind: type, *args: object) -> None:
        with ThreadPoolExecutor(self._workers) as threads:
            self.objects = list(threads.map(lambda _: kind(*args), range(self._workers)))

    def call(self, worker: int, method: str, *args: Any, within_s: float | None = None) -> Any:
        self._before(worker, method)
        if worker in self.lost:
            raise WorkerLost(f"{self.name(worker)} died")
        return getattr(self.objects[worker], method)(*args)

    def put(self, value: object) -> Any:
        return value

    def name(self, worker: int) -> str:
        return f"worker {worker}"


class CrewElsewhere(CrewOfThreads):
    """Workers whose clock is ``ahead_ns`` of ours, at the other end of a line."""

    def __init__(self, workers: int, ahead_ns: int, line_s: float = 0.0) -> None:
        super().__init__(workers)
        self.ahead_ns, self._line_s = ahead_ns, line_s

    def call(self, worker: int, method: str, *args: Any, within_s: float | None = None) -> Any:
        if method == "whereabouts":
            return "elsewhere", os.getpid(), "another boot"
        if method == "begin":
            *first, run_start_ns, start_us = args
            args = (*first, run_start_ns - self.ahead_ns, start_us)
        if method != "now_ns":
            return super().call(worker, method, *args)
        time.sleep(self._line_s / 2)
        now_ns = time.monotonic_ns() + self.ahead_ns
        time.sleep(self._line_s / 2)
        return now_ns
