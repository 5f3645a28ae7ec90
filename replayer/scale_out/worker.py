"""What runs in each process of a scaled replay: an event loop that sends its share of a pass."""

import asyncio
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from s2l.replayer.clock import MonotonicClock
from s2l.replayer.event_loop import new_event_loop
from s2l.replayer.open_files import raise_limit
from s2l.replayer.options import ReplayOptions
from s2l.replayer.pacer import Pacer
from s2l.replayer.pass_runner import PassRunner
from s2l.replayer.passes import Pass, prepare
from s2l.replayer.plan import Plan
from s2l.replayer.scale_out.clock_offset import boot_id
from s2l.replayer.scale_out.worker_log import Parcel, WorkerLog
from s2l.serving_adapter.adapters import ADAPTERS
from s2l.serving_adapter.base import PreparedRequest, ServingAdapter

T = TypeVar("T")
_SWITCH_S: Final = 1e-4
"""How long a thread that packs records may keep the interpreter from the event loop."""


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """Which server is measured, through which adapter, and how."""

    adapter: str
    url: str
    settings: dict[str, Any]
    options: ReplayOptions


@dataclass(frozen=True, slots=True)
class Report:
    """How a worker's share of a pass goes; ``log`` is what finished since the report before."""

    started: int
    in_flight: int
    over: bool
    server_gone: bool
    log: Parcel


class ReplayWorker:
    """Methods may be called from several threads; the sending is done by a loop of its own."""

    def __init__(self, spec: WorkerSpec) -> None:
        sys.setswitchinterval(_SWITCH_S)
        raise_limit()
        self._spec = spec
        self._loop = new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="s2l-sender", daemon=True).start()
        self._adapter: ServingAdapter | None = None
        self._requests: list[PreparedRequest] = []
        self._log = WorkerLog()
        self._runner: PassRunner | None = None
        self._running: Future[None] | None = None
        self._called_off = False

    def whereabouts(self) -> tuple[str, int, str]:
        """Host, process id and boot id."""
        return socket.gethostname(), os.getpid(), boot_id()

    def now_ns(self) -> int:
        """This machine's monotonic clock."""
        return time.monotonic_ns()

    def connect(self) -> None:
        """Ask the server what it is. Raises ServingError."""
        self._adapter = self._wait(self._connected())

    def prepare(self, plan: Plan, delivery: str, answer_at: str | None) -> None:
        """Encode the requests of a pass."""
        self._called_off = False
        adapter, max_tokens = self._adapter, self._spec.options.max_tokens
        if adapter is None:
            raise RuntimeError("connect comes before prepare")

        async def encode() -> list[PreparedRequest]:
            return prepare(plan, delivery, answer_at, adapter, max_tokens)

        self._requests = self._wait(encode())

    def begin(
        self,
        share: Pass,
        workers: int,
        cancel_us: npt.NDArray[np.int64] | None,
        run_start_ns: int,
        start_us: int,
    ) -> None:
        """Start sending at ``start_us`` of a run that began at ``run_start_ns`` of this clock."""
        self._log = WorkerLog()

        async def go() -> None:
            if self._called_off:
                return
            clock = MonotonicClock()
            self._runner = PassRunner(
                share,
                self._requests,
                Pacer(clock, start_ns=run_start_ns),
                self._log,
                _share_of(self._spec.options, share.worker or 0, workers),
                start_us=start_us,
                cancel_us=cancel_us,
            )
            try:
                await self._runner.run()
            finally:
                clock.close()

        self._runner = None
        self._running = asyncio.run_coroutine_threadsafe(go(), self._loop)

    def report(self) -> Report:
        """How it goes. Raises what ended the sending, if an error of ours did."""
        running, runner = self._running, self._runner
        over = running is not None and running.done()
        if over and running is not None:
            running.result()
        elif runner is not None:
            self._wait(_called(runner.hand_over))
        log = self._log.take()
        if runner is None:
            return Report(0, 0, over, False, log)
        sender = runner.replayer
        return Report(sender.started, sender.in_flight, over, sender.server_gone, log)

    def drain(self) -> None:
        """Start nothing more, also of a pass that is about to begin."""
        self._called_off = True
        if (runner := self._runner) is not None:
            self._loop.call_soon_threadsafe(runner.replayer.drain)

    def stop(self) -> None:
        """End at once."""
        self._called_off = True
        if (runner := self._runner) is not None:
            self._loop.call_soon_threadsafe(runner.replayer.stop)

    async def _connected(self) -> ServingAdapter:
        spec = self._spec
        adapter = await ADAPTERS[spec.adapter](spec.url, **spec.settings).__aenter__()
        await adapter.probe()
        return adapter

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _called(method: Callable[[], None]) -> None:
    method()


def _share_of(options: ReplayOptions, worker: int, workers: int) -> ReplayOptions:
    """Limits of the whole load, shared out."""
    return replace(
        options,
        concurrency=_part(options.concurrency, worker, workers),
        max_concurrency=_part(options.max_concurrency, worker, workers),
    )


def _part(total: int | None, worker: int, workers: int) -> int | None:
    return None if total is None else total // workers + (worker < total % workers)
