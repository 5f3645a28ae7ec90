"""One replay from trace to run folder: probe, plan, warm up, replay each delivery, judge, write."""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from s2l.replayer.clock import Clock, MonotonicClock
from s2l.replayer.delivery import deliveries_named
from s2l.replayer.monitor import Monitor
from s2l.replayer.options import ReplayOptions
from s2l.replayer.pacer import Pacer
from s2l.replayer.plan import Plan, plan_queries
from s2l.replayer.provenance import host, packages
from s2l.replayer.record import RequestRecord
from s2l.replayer.replayer import PreparedQuery, prepare_pass, replay
from s2l.replayer.run import RUN_FORMAT, PassWindow, RunInfo, Target, TraceRef
from s2l.replayer.run_writer import write_run
from s2l.replayer.validity import count, judge
from s2l.replayer.warmup import warm_up
from s2l.serving_adapter.base import ServerInfo, ServingAdapter
from s2l.workloads.trace import Trace

LEAD_US: Final = 200_000
"""A pass starts this long after its requests are encoded, so that none is late from the start."""


@dataclass(frozen=True, slots=True)
class Observer:
    """Who is told how a replay goes on. Only ``on_end`` is called while something is timed."""

    on_stage: Callable[[str], None] = lambda _: None
    on_pass: Callable[[str, int], None] = lambda _, __: None
    on_end: Callable[[RequestRecord], None] = lambda _: None


@dataclass(slots=True)
class Experiment:
    """One replay under way. ``url`` and ``embedded`` say what ``adapter`` talks to."""

    trace: Trace
    adapter: ServingAdapter
    options: ReplayOptions
    url: str
    embedded: bool = False
    command: Sequence[str] = ()
    observer: Observer = field(default_factory=Observer)
    clock: Clock = field(default_factory=MonotonicClock)
    _run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _passes: dict[str, list[PreparedQuery]] = field(default_factory=dict)
    _windows: list[PassWindow] = field(default_factory=list)
    _monitor: Monitor = field(default_factory=Monitor)
    _warmup_s: list[float] = field(default_factory=list)

    async def run(self, path: Path) -> RunInfo:
        """Replay the trace and write the run to ``path``.

        Once the first request is under way the run is written however it ends. Cancelling it
        (Ctrl-C) is an ending like others: the run says that it was interrupted.

        Raises:
            PlanError, TraceError, ServingError: nothing was started.
            RunNotWritten: the disk did not take it.
        """
        server = await self.adapter.probe()
        plan = await plan_queries(self.trace, self.adapter, self.options, server)
        await self._warm_up(plan)
        created = datetime.now(UTC)
        pacer = Pacer(self.clock)
        interrupted = True
        try:
            await self._replay_all(plan, pacer)
            interrupted = False
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
        finally:
            self._plan_missing_passes(plan, pacer)
            info = self._info(server, plan, created, interrupted)
            await asyncio.to_thread(self._write, path, info, plan)
        return info

    async def _warm_up(self, plan: Plan) -> None:
        self.observer.on_stage(f"warming up with {self.options.warmup} requests")
        salt = f"{self._run_id}/warm-up"
        self._warmup_s = await warm_up(
            plan, self.adapter, self.options, salt=salt, clock=self.clock
        )

    async def _replay_all(self, plan: Plan, pacer: Pacer) -> None:
        for delivery in deliveries_named(self.options.delivery):
            start_us = pacer.now_us() + LEAD_US
            prepared = self._passes[delivery] = self._prepare(plan, delivery, start_us)
            self.observer.on_pass(delivery, len(prepared))
            watching = asyncio.create_task(self._monitor.watch(pacer, delivery))
            try:
                await replay(
                    prepared,
                    pacer,
                    timeout_s=self.options.timeout_s,
                    on_end=self.observer.on_end,
                )
            finally:
                watching.cancel()
                with suppress(asyncio.CancelledError):
                    await watching
                window = PassWindow(delivery=delivery, start_us=start_us, end_us=pacer.now_us())
                self._windows.append(window)

    def _prepare(self, plan: Plan, delivery: str, start_us: int) -> list[PreparedQuery]:
        return prepare_pass(
            plan.queries,
            delivery,
            self.adapter,
            start_us=start_us,
            rate=self.options.rate_qps,
            max_output_tokens=self.options.max_tokens,
            run_id=self._run_id,
        )

    def _plan_missing_passes(self, plan: Plan, pacer: Pacer) -> None:
        """Passes that never began were planned all the same: their requests are unsent."""
        for delivery in deliveries_named(self.options.delivery):
            if delivery not in self._passes:
                self._passes[delivery] = self._prepare(plan, delivery, pacer.now_us())

    @property
    def _records(self) -> list[RequestRecord]:
        return [item.record for prepared in self._passes.values() for item in prepared]

    def _info(
        self, server: ServerInfo, plan: Plan, created: datetime, interrupted: bool
    ) -> RunInfo:
        records, samples = self._records, self._monitor.samples
        return RunInfo(
            format=RUN_FORMAT,
            created_utc=created.isoformat(timespec="seconds"),
            command=list(self.command),
            options=self.options.as_dict(),
            seed=self.options.seed,
            trace=TraceRef(
                name=self.trace.manifest.name, path=str(self.trace.path), sha256=self.trace.sha256
            ),
            target=self._target(server),
            host=host(),
            packages=packages(),
            schedule=self._schedule(plan),
            warmup={"requests": self.options.warmup, "e2e_s": self._warmup_s},
            passes=self._windows,
            validity=judge(
                records,
                samples,
                caches_separate=server.separate_caches,
                unloaded_s=self._warmup_s[-1] if self._warmup_s else None,
            ),
            counts=count(records),
            interrupted=interrupted,
        )

    def _target(self, server: ServerInfo) -> Target:
        return Target(
            url=self.url,
            adapter=self.adapter.name,
            server=server.server,
            server_version=server.version,
            model=server.model,
            embedded=self.embedded,
            settings=server.settings,
        )

    def _schedule(self, plan: Plan) -> dict[str, Any]:
        return {
            "arrivals": self.options.arrivals,
            "rate_qps": self.options.rate_qps,
            "queries": len(plan.queries),
            "unfinished_left_out": plan.unfinished,
            "last_start_s": max(query.start_us for query in plan.queries) / 1e6,
        }

    def _write(self, path: Path, info: RunInfo, plan: Plan) -> None:
        queries = [query.query for query in plan.queries]
        write_run(path, info, queries=queries, records=self._records, samples=self._monitor.samples)
