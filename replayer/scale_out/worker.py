"""What runs in each process of a scaled replay: an event loop that sends its share of a pass."""

import asyncio
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from s2l.replayer.clock import MonotonicClock
from s2l.replayer.garbage import settle
from s2l.replayer.open_files import check_open_files, files_left, raise_limit, sockets_at_once
from s2l.replayer.options import ReplayOptions
from s2l.replayer.pacer import Pacer
from s2l.replayer.pass_runner import PassRunner
from s2l.replayer.passes import Pass, plan_pass, prepare
from s2l.replayer.plan import Plan
from s2l.replayer.scale_out.clock_offset import boot_id
from s2l.replayer.scale_out.journal import Journal, JournalAddress
from s2l.replayer.scale_out.worker_log import Parcel, WorkerLog
from s2l.serving_adapter.adapters import ADAPTERS
from s2l.serving_adapter.base import PreparedRequest, ServingAdapter
from s2l.serving_adapter.event_loop import new_event_loop

T = TypeVar("T")
_SWITCH_S: Final = 1e-4
"""How long a thread that sends reports may keep the interpreter from the event loop."""


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """Which server is measured, through which adapter, and how."""

    adapter: str
    url: str
    settings: dict[str, Any]
    options: ReplayOptions


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which pass is prepared, and which share of it: every ``workers``-th request from number
    ``worker`` on. Answers take ``answer_us``, by which connections are opened ahead."""

    delivery: str
    answer_at: str | None
    worker: int
    workers: int
    answer_us: int


@dataclass(frozen=True, slots=True)
class Report:
    """How a worker's share of a pass goes; ``parcel`` is what finished since the report before."""

    started: int
    in_flight: int
    over: bool
    server_gone: bool
    parcel: Parcel


class ReplayWorker:
    """Methods may be called from several threads; all that they change is changed by one event
    loop, which sends."""

    def __init__(self, spec: WorkerSpec) -> None:
        sys.setswitchinterval(_SWITCH_S)
        self._spec = spec
        self._loop = new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="s2l-sender", daemon=True).start()
        self._adapter: ServingAdapter | None = None
        self._todo: Pass | None = None
        self._options = spec.options
        self._requests: list[PreparedRequest] = []
        self._journal = Journal()
        self._log = WorkerLog(self._journal)
        self._runner: PassRunner | None = None
        self._running: asyncio.Task[None] | None = None
        self._called_off = False

    def whereabouts(self) -> tuple[str, int, str]:
        """Host, process id and boot id."""
        return socket.gethostname(), os.getpid(), boot_id()

    def now_ns(self) -> int:
        """This machine's monotonic clock."""
        return time.monotonic_ns()

    def connect(self) -> JournalAddress | None:
        """Ask the server what it is; where to read what is done here. Raises ServingError."""
        self._adapter = self._wait(self._connected())
        return self._journal.address

    def prepare(self, plan: Plan, task: Assignment) -> None:
        """Encode the requests of a pass, and open what this share of them will need.

        Raises:
            PlanError: it needs more files than may be open here.
        """
        self._wait(self._prepare(plan, task))

    def begin(
        self,
        run_id: str,
        rate: float | None,
        cancel_us: npt.NDArray[np.int64] | None,
        run_start_ns: int,
        start_us: int,
    ) -> None:
        """Start sending at ``start_us`` of a run that began at ``run_start_ns`` of this clock."""
        self._wait(self._begin(run_id, rate, cancel_us, run_start_ns, start_us))

    def report(self) -> Report:
        """How it goes. Raises what ended the sending, if an error of ours did."""
        return self._wait(self._reported())

    def drain(self) -> None:
        """Start nothing more, also of a pass that is about to begin."""
        self._loop.call_soon_threadsafe(self._call_off, PassRunner.drain)

    def stop(self) -> None:
        """End at once."""
        self._loop.call_soon_threadsafe(self._call_off, PassRunner.stop)

    async def _connected(self) -> ServingAdapter:
        spec = self._spec
        adapter = await ADAPTERS[spec.adapter](spec.url, **spec.settings).__aenter__()
        await adapter.probe()
        return adapter

    async def _prepare(self, plan: Plan, task: Assignment) -> None:
        adapter, whole, first = self._adapter, self._spec.options, self._todo is None
        if adapter is None:
            raise RuntimeError("connect comes before prepare")
        self._runner, self._running, self._called_off = None, None, False
        self._journal.clear()
        self._options = options = _share_of(whole, task.worker, task.workers)
        todo = plan_pass(plan, task.delivery, task.answer_at, run_id="", rate=None)
        self._todo = todo.slice_for(task.worker, task.workers)
        self._requests = prepare(plan, task.delivery, task.answer_at, adapter, whole.max_tokens)
        part = slice(task.worker, None, task.workers)
        starts_us, dues_us = plan.starts_us[part], plan.dues_us()[part]
        limit = raise_limit()
        if first:  # what is open later is its own, and used again
            check_open_files(sockets_at_once(starts_us, dues_us, options), limit)
        sockets = sockets_at_once(starts_us, dues_us + task.answer_us, options)
        left = files_left(limit)
        await adapter.ready(sockets if left is None else min(sockets, left))
        settle()

    async def _begin(
        self,
        run_id: str,
        rate: float | None,
        cancel_us: npt.NDArray[np.int64] | None,
        run_start_ns: int,
        start_us: int,
    ) -> None:
        if self._called_off:
            return
        if self._todo is None:
            raise RuntimeError("prepare comes before begin")
        clock = MonotonicClock()
        self._runner = PassRunner(
            replace(self._todo, run_id=run_id, rate=rate),
            self._requests,
            Pacer(clock, start_ns=run_start_ns),
            self._log,
            self._options,
            start_us=start_us,
            cancel_us=cancel_us,
            on_start=self._journal.note_started,
            on_end=self._log.add,
        )
        self._running = asyncio.create_task(_run(self._runner, clock))

    async def _reported(self) -> Report:
        runner, running = self._runner, self._running
        over = self._called_off if running is None else running.done()
        if over and running is not None:
            running.result()
        if runner is None:
            return Report(0, 0, over, False, self._log.take())
        runner.hand_over()
        sent = runner.replayer
        return Report(sent.started, sent.in_flight, over, sent.server_gone, self._log.take())

    def _call_off(self, how: Callable[[PassRunner], None]) -> None:
        self._called_off = True
        if self._runner is not None:
            how(self._runner)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _run(runner: PassRunner, clock: MonotonicClock) -> None:
    try:
        await runner.run()
    finally:
        clock.close()


def _share_of(options: ReplayOptions, worker: int, workers: int) -> ReplayOptions:
    """Limits of the whole load, shared out."""
    return replace(
        options,
        concurrency=_part(options.concurrency, worker, workers),
        max_concurrency=_part(options.max_concurrency, worker, workers),
    )


def _part(total: int | None, worker: int, workers: int) -> int | None:
    return None if total is None else total // workers + (worker < total % workers)
