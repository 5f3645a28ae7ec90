"""One replay from trace to run folder: probe, plan, warm up, replay each pass, judge, write."""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from s2l.replayer.answer_at import points
from s2l.replayer.cancellation import cancel_moments_us
from s2l.replayer.circumstances import Circumstances
from s2l.replayer.clock import Clock, MonotonicClock
from s2l.replayer.delivery import deliveries_named
from s2l.replayer.ledger import Ledger
from s2l.replayer.open_files import check_open_files, raise_limit, sockets_needed
from s2l.replayer.options import ReplayOptions
from s2l.replayer.pacer import Pacer
from s2l.replayer.passes import Pass, passes_of
from s2l.replayer.plan import Plan, plan_queries
from s2l.replayer.plan_summary import PlanSummary, summarize_plan
from s2l.replayer.planned_passes import PlannedPasses
from s2l.replayer.progress import Progress, progress_of
from s2l.replayer.record import RequestRecord
from s2l.replayer.run import Finding, PassWindow, RunInfo, Validity
from s2l.replayer.run_end import Beginning, Course, begun_info, end_run
from s2l.replayer.run_writer import RunWriter
from s2l.replayer.sender import LocalSenders, Sender, Senders
from s2l.replayer.server_watch import ServerWatch
from s2l.replayer.validity import INVALID, NOTE
from s2l.replayer.warmup import warm_up
from s2l.serving_adapter.base import ServerInfo, ServingAdapter, ServingError
from s2l.workloads.trace import Trace

DRAIN_S: Final = 30.0
"""How long requests under way may take to end once a run is drained."""


@dataclass(frozen=True, slots=True)
class Observer:
    """Who is told how a replay goes on. ``on_end`` is called on the event loop while requests are
    timed, so it is to be quick; a live view asks ``Experiment.progress`` instead."""

    on_stage: Callable[[str], None] = lambda _: None
    on_pass: Callable[[str, int], None] = lambda _, __: None
    on_end: Callable[[RequestRecord], None] | None = None


@dataclass(slots=True)
class Experiment:
    """One replay under way. ``url`` and ``embedded`` say what ``adapter`` talks to; ``calibration``
    is the client's own error on this machine, where it is known; ``senders`` are other processes
    that send, if not this one."""

    trace: Trace
    adapter: ServingAdapter
    options: ReplayOptions
    url: str
    embedded: bool = False
    command: Sequence[str] = ()
    observer: Observer = field(default_factory=Observer)
    clock: Clock = field(default_factory=MonotonicClock)
    server_watch: ServerWatch = field(default_factory=ServerWatch)
    calibration: dict[str, Any] | None = None
    senders: Senders | None = None
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _stage: str = "starting"
    _pacer: Pacer | None = None
    _ledger: Ledger | None = None
    _current: Sender | None = None
    _sent: dict[str, Sender] = field(default_factory=dict)
    _windows: list[PassWindow] = field(default_factory=list)
    _remarks: list[Finding] = field(default_factory=list)
    _draining: bool = False
    _interrupted: bool = False

    async def run(self, path: Path) -> RunInfo:
        """Replay the trace and write the run to ``path``.

        Once the first request is under way the run is written however it ends; what ended it is
        among the findings. Cancelling the task stops it at once, as ``stop`` does.

        Raises:
            PlanError, TraceError, ServingError: nothing was started.
            RunNotWritten: the disk did not take it.
        """
        server, plan, passes = await self._prepared()
        if not any(query.context.chunks for query in plan.queries):
            text = "no query of this trace has any context: there is nothing to stream"
            self._remarks.append(Finding(check="no_context", severity=NOTE, text=text))
        begun = await self._warmed_up(server, plan, passes)
        self._ledger = ledger = Ledger(passes)
        self._pacer = pacer = Pacer(self.clock)
        writer = RunWriter(
            path,
            begun_info(begun, self.adapter.name, self._remarks),
            PlannedPasses.of(passes, open_ended=self.options.open_ended),
            [query.query for query in plan.queries],
            on_record=ledger.add,
            on_sample=ledger.add_sample,
            on_disk_full=self._halt_from_thread(),
        )
        answer_s = begun.warmup_s[-1] if begun.warmup_s else 0.0
        senders = self.senders or LocalSenders(self.adapter, self.options, self.observer.on_end)
        senders.answer_s = answer_s
        try:
            await self._replay_all(plan, passes, senders, pacer, writer)
        except asyncio.CancelledError:
            self._draining = self._interrupted = True
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
        finally:
            self.clock.close()
            self._say("writing the run")
            remarks = [*self._remarks, *senders.findings()]
            course = Course(ledger, self._sent, self._windows, remarks, self._interrupted)
            info = await end_run(writer, self.adapter, self.server_watch, begun, course)
        return info

    async def plan_only(self) -> PlanSummary:
        """What ``run`` would do, with nothing sent but what asks the server of itself.

        Raises:
            PlanError, TraceError, ServingError: it could not.
        """
        server, plan, passes = await self._prepared()
        return summarize_plan(plan, passes, self.options, server)

    def drain(self) -> None:
        """Start nothing more; what is under way may end, within ``DRAIN_S`` seconds."""
        if self._draining:
            return
        self._draining = self._interrupted = True
        if self._current is not None:
            self._current.drain()
            asyncio.get_running_loop().call_later(DRAIN_S, self.stop)

    def stop(self) -> None:
        """End at once: what is under way is over; the run is written all the same."""
        self._interrupted = True
        self._halt()

    @property
    def start_ns(self) -> int | None:
        """The run's start by its clock, from which all times of its records count."""
        return None if self._pacer is None else self._pacer.start_ns

    def progress(self) -> Progress:
        """How it goes; may be asked by any thread at any time."""
        parts = (self._stage, self._pacer, self._ledger, self._current)
        return progress_of(*parts, open_ended=self.options.open_ended)

    def validity(self) -> Validity:
        """The verdict so far; may be asked by any thread at any time."""
        if self._ledger is None:
            return Validity(verdict="valid")
        closed_loop = self.options.concurrency is not None
        return self._ledger.judged(Circumstances(True, closed_loop=closed_loop))

    async def _prepared(self) -> tuple[ServerInfo, Plan, list[Pass]]:
        self._say("asking the server what it is")
        server = await self.adapter.probe()
        self._say("reading the trace")
        plan = await plan_queries(self.trace, self.adapter, self.options, server)
        if self.senders is None:  # other processes look for themselves
            check_open_files(sockets_needed(plan, self.options), raise_limit())
        passes = passes_of(
            plan,
            deliveries_named(self.options.delivery),
            points(self.options.answer_at),
            run_id=self.run_id,
            rate=self.options.rate_qps,
        )
        return server, plan, passes

    async def _warmed_up(self, server: ServerInfo, plan: Plan, passes: list[Pass]) -> Beginning:
        self._say(f"warming up with {self.options.warmup} requests")
        salt = f"{self.run_id}/warm-up"
        warmup_s = await warm_up(plan, self.adapter, self.options, salt=salt, clock=self.clock)
        return Beginning(
            self.trace,
            plan,
            passes,
            self.options,
            server,
            self.url,
            self.embedded,
            self.command,
            datetime.now(UTC),
            warmup_s,
            self.calibration,
        )

    async def _replay_all(
        self, plan: Plan, passes: list[Pass], senders: Senders, pacer: Pacer, writer: RunWriter
    ) -> None:
        options, dues_us = self.options, plan.dues_us() - plan.starts_us
        cancel_us = cancel_moments_us(len(dues_us), options.cancel_fraction, options.seed, dues_us)
        for todo in passes:
            if not self._draining:
                self._say(f"encoding the requests of {todo.name}")
                await senders.prepare(plan, todo.delivery, todo.answer_at)
            if self._draining:
                return
            try:
                await self.server_watch.before_pass(pacer, todo)
            except ServingError as error:
                text = f"{todo.name} and what follows was not sent: {error}"
                self._remarks.append(
                    Finding(check="cache_not_emptied", severity=INVALID, text=text)
                )
                return
            start_us = pacer.now_us() + senders.lead_us
            sender = senders.sender(todo, writer, pacer, start_us=start_us, cancel_us=cancel_us)
            try:
                await self._replay(sender, pacer)
            finally:
                await self.server_watch.after_pass()

    async def _replay(self, sender: Sender, pacer: Pacer) -> None:
        todo = sender.todo
        self._current = self._sent[todo.name] = sender
        self._stage = f"replaying {todo.name}"
        self.observer.on_pass(todo.name, len(todo))
        try:
            if not self._draining:
                await sender.run()
        finally:
            window = PassWindow(
                delivery=todo.delivery,
                start_us=sender.start_us,
                end_us=pacer.now_us(),
                answer_at=todo.answer_at,
            )
            self._windows.append(window)
        if sender.server_gone:
            text = f"{self.url} refused one connection after another; the rest was not sent"
            self._remarks.append(Finding(check="server_gone", severity=INVALID, text=text))
            self._draining = True

    def _halt(self) -> None:
        self._draining = True
        if self._current is not None:
            self._current.stop()

    def _halt_from_thread(self) -> Callable[[], None]:
        loop = asyncio.get_running_loop()

        def halt() -> None:
            loop.call_soon_threadsafe(self._halt)

        return halt

    def _say(self, stage: str) -> None:
        self._stage = stage
        self.observer.on_stage(stage)
