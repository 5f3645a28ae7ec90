"""Replays a trace into a run folder as the commands do it: watched, shown, interruptible."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from s2l.drain import interrupts
from s2l.engine import api_key
from s2l.progress import say
from s2l.replayer.experiment import Experiment, Observer
from s2l.replayer.options import ReplayOptions
from s2l.replayer.plan_summary import PlanSummary
from s2l.replayer.prefix_cache import reset_prefix_cache
from s2l.replayer.run import RunInfo
from s2l.replayer.scale_out.crew import Crew
from s2l.replayer.scale_out.scale_out import ScaleOut
from s2l.replayer.scale_out.worker import WorkerSpec
from s2l.replayer.server_monitor import ServerMonitor
from s2l.replayer.server_watch import ServerWatch
from s2l.replaying.calibrating import Calibration
from s2l.replaying.json_events import JsonEvents
from s2l.replaying.live_view import LiveView, live_view
from s2l.replaying.target import Target, adapter_choice, adapter_for
from s2l.serving_adapter.base import ServingAdapter
from s2l.serving_adapter.event_loop import run
from s2l.workloads.trace import Trace

EMBEDDED: Final = Target()
NO_CALIBRATION: Final = Calibration(False)
CUT_SHORT: Final = frozenset({"server_gone", "cache_not_emptied", "disk"})

T = TypeVar("T")


def run_interruptibly(main: Coroutine[Any, Any, T]) -> T:
    """Run on the loop that measures best. Raises KeyboardInterrupt where Ctrl-C came before there
    was anything to keep."""
    try:
        return run(main)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def replay_into(
    path: Path,
    trace: Trace,
    options: ReplayOptions,
    url: str,
    *,
    embedded: bool,
    target: Target = EMBEDDED,
    calibration: Calibration = NO_CALIBRATION,
    events: JsonEvents | None = None,
    crew: Crew | None = None,
) -> RunInfo:
    """Replay against the server at ``url`` into a run folder, from this process or by a crew.

    Raises what ``Experiment.run`` does; WorkerLost where one of the crew died before anything was
    sent; asyncio.CancelledError where it was interrupted before anything was measured.
    """
    async with await adapter_for(url, target) as adapter:
        experiment = Experiment(
            trace,
            adapter,
            options,
            url=url,
            embedded=embedded,
            command=["s2l", *sys.argv[1:]],
            server_watch=await _server_watch(adapter, options, url),
            senders=None if crew is None else await _hired(crew, url, target, options),
            calibration=await calibration.get(),
        )
        say(f"replaying {trace.path} against {url}")
        if events is not None:
            events.started(run=str(path), trace=str(trace.path), target=url)
        with live_view(experiment.progress, events) as view, _interruptible(experiment):
            experiment.observer = Observer(on_stage=_stages(view, events))
            return await experiment.run(path)


def cut_short(info: RunInfo) -> str | None:
    """What ended a run before its end, where that was not the person in front of it."""
    found = (f.text for f in info.validity.findings if f.check in CUT_SHORT)
    return next(found, None)


async def _hired(crew: Crew, url: str, target: Target, options: ReplayOptions) -> ScaleOut:
    name, settings = await adapter_choice(url, target)
    senders = ScaleOut(crew, WorkerSpec(name, url, settings, options))
    await senders.hire()
    return senders


async def plan_only(
    trace: Trace, options: ReplayOptions, url: str, *, embedded: bool, target: Target
) -> PlanSummary:
    """What a replay would do. Raises what ``Experiment.plan_only`` does."""
    async with await adapter_for(url, target) as adapter:
        return await Experiment(trace, adapter, options, url=url, embedded=embedded).plan_only()


async def _server_watch(adapter: ServingAdapter, options: ReplayOptions, url: str) -> ServerWatch:
    """Its metrics are looked at always; its cache is emptied only where it must be: where
    requests of one pass could find what the pass before has left there."""
    separate = (await adapter.probe()).capabilities.separate_caches
    return ServerWatch(
        ServerMonitor(url, options.server_metrics_interval_s, api_key()),
        None if separate else partial(reset_prefix_cache, url, api_key()),
    )


def _stages(view: LiveView, events: JsonEvents | None) -> Callable[[str], None]:
    """Stages lie between passes: the one before is shown as it ended."""

    def on_stage(text: str) -> None:
        view.look()
        if events is not None:
            events.stage(text)
        say(f"{text} ...")

    return on_stage


def _interruptible(experiment: Experiment) -> AbstractContextManager[None]:
    """The first Ctrl-C starts nothing more, the second stops at once; before anything is measured
    the first one is enough."""
    task = asyncio.current_task()

    def first() -> None:
        if experiment.progress().pass_name:
            say("stopping: requests under way are finished first; Ctrl-C again stops at once")
            experiment.drain()
        elif task is not None:
            task.cancel()

    return interrupts(first, experiment.stop)
