"""Watches the client itself while it measures: a late event loop makes every number late."""

import time
from dataclasses import dataclass

import psutil

from s2l.replayer.pacer import Pacer

PERIOD_US = 50_000


@dataclass(frozen=True, slots=True)
class ClientSample:
    """How late the loop woke at ``time_us``, and what the process has used up to then."""

    delivery: str
    time_us: int
    loop_lag_us: int
    cpu_s: float
    rss_bytes: int


class Monitor:
    """Samples the event loop it runs on, 20 times a second, until it is cancelled."""

    def __init__(self) -> None:
        self.samples: list[ClientSample] = []
        self._process = psutil.Process()

    async def watch(self, pacer: Pacer, delivery: str) -> None:
        """Sample until cancelled."""
        due_us = pacer.now_us()
        while True:
            due_us += PERIOD_US
            await pacer.until(due_us)
            now_us = pacer.now_us()
            rss = self._process.memory_info().rss
            sample = ClientSample(delivery, now_us, now_us - due_us, time.process_time(), rss)
            self.samples.append(sample)
            due_us = max(due_us, now_us)  # a long pause is one late sample, not many
