"""CPU and memory of a process and its children, sampled so that any stretch can be told."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil

PERIOD_S = 0.1


@dataclass
class ProcessMeter:
    """Samples until the process ends; times are those of ``time.monotonic``.
    ``on_sample`` is called for each process that is found."""

    pid: int
    on_sample: Callable[[int], None] = lambda _: None
    times_s: list[float] = field(default_factory=list)
    cpus_s: list[float] = field(default_factory=list)
    peak_mb: float = 0.0

    def __post_init__(self) -> None:
        self._ended: dict[int, float] = {}
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def cpu_between_s(self, from_s: float, to_s: float) -> float:
        """CPU seconds used in that time."""
        return self._at(to_s) - self._at(from_s)

    def end_all(self) -> None:
        """Kill the process and its children."""
        try:
            main = psutil.Process(self.pid)
            for process in [*main.children(recursive=True), main]:
                process.kill()
        except psutil.NoSuchProcess:
            return

    def _watch(self) -> None:
        try:
            main = psutil.Process(self.pid)
            while main.status() != psutil.STATUS_ZOMBIE:
                self._sample([main, *main.children(recursive=True)])
                time.sleep(PERIOD_S)
        except psutil.NoSuchProcess:
            return

    def _sample(self, processes: list[psutil.Process]) -> None:
        memory = 0
        for process in processes:
            try:
                self.on_sample(process.pid)
                times = process.cpu_times()
                memory += process.memory_info().rss
            except (psutil.NoSuchProcess, FileNotFoundError):
                continue
            self._ended[process.pid] = times.user + times.system
        self.times_s.append(time.monotonic())
        self.cpus_s.append(sum(self._ended.values()))
        self.peak_mb = max(self.peak_mb, memory / 1e6)

    def _at(self, time_s: float) -> float:
        before = [cpu for at, cpu in zip(self.times_s, self.cpus_s, strict=True) if at <= time_s]
        return before[-1] if before else 0.0
