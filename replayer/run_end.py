"""The end of a run: what is unsent written, the server asked once more, the verdict made."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from s2l.replayer.circumstances import circumstances
from s2l.replayer.ledger import Ledger
from s2l.replayer.options import ReplayOptions
from s2l.replayer.passes import Pass
from s2l.replayer.plan import Plan
from s2l.replayer.plan_summary import schedule_summary
from s2l.replayer.provenance import host, packages
from s2l.replayer.record import INTERRUPTED, RequestRecord
from s2l.replayer.run import (
    RUN_FORMAT,
    Counts,
    Finding,
    PassWindow,
    RunError,
    RunInfo,
    Target,
    TraceRef,
    Validity,
)
from s2l.replayer.run_writer import RunWriter
from s2l.replayer.sender import Sender
from s2l.replayer.server_watch import ServerWatch
from s2l.replayer.tally import count
from s2l.replayer.token_fill import fill_output_tokens
from s2l.replayer.validity import INVALID, NOTE
from s2l.serving_adapter.base import ServerInfo, ServingAdapter, ServingError
from s2l.workloads.trace import Trace


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a run began with."""

    trace: Trace
    plan: Plan
    passes: list[Pass]
    options: ReplayOptions
    server: ServerInfo
    url: str
    embedded: bool
    command: Sequence[str]
    created: datetime
    warmup_s: list[float]
    calibration: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Course:
    """How it went: ``senders`` by the name of their pass, ``interrupted`` by the user or not."""

    ledger: Ledger
    senders: dict[str, Sender]
    windows: list[PassWindow]
    remarks: list[Finding]
    interrupted: bool


async def end_run(
    writer: RunWriter,
    adapter: ServingAdapter,
    watch: ServerWatch,
    begun: Beginning,
    course: Course,
) -> RunInfo:
    """Write all that is left, ``run.json`` last.

    Raises:
        RunNotWritten: the disk does not take it.
    """
    server_rows = watch.monitor.batches() if watch.monitor else None
    unsent = _unsent(begun, course)
    await asyncio.to_thread(writer.finish, unsent, server_rows)
    remarks = [*course.remarks, *_remarks(writer, watch)]
    if n := course.ledger.uncounted:
        remarks.append(await _counted(writer.path, n, adapter, begun.server))
    known = await circumstances(
        begun.server,
        adapter,
        course.ledger.answers,
        options=begun.options,
        caches_emptied=watch.resets >= len(course.windows) > 0,
        unloaded_s=begun.warmup_s[-1] if begun.warmup_s else None,
        calibration=begun.calibration,
        remarks=tuple(remarks),
    )
    counts = count(course.ledger.tallies.values())
    cut_short = counts.unsent > 0 or INTERRUPTED in counts.failed
    info = msgspec.structs.replace(
        begun_info(begun, adapter.name),
        passes=course.windows,
        validity=course.ledger.judged(known),
        counts=counts,
        interrupted=course.interrupted and cut_short,
    )
    await asyncio.to_thread(writer.write_info, info)
    return info


def begun_info(begun: Beginning, adapter: str, remarks: Sequence[Finding] = ()) -> RunInfo:
    """``run.json`` as far as it is known when the first request is yet to be sent; no requests are
    planned where only their time is."""
    options = begun.options
    planned = 0 if options.open_ended else sum(map(len, begun.passes))
    return RunInfo(
        format=RUN_FORMAT,
        created_utc=begun.created.isoformat(timespec="seconds"),
        command=list(begun.command),
        options=options.as_dict(),
        seed=options.seed,
        trace=_trace_ref(begun.trace),
        target=_target(begun, adapter),
        host=host(),
        packages=packages(),
        schedule=schedule_summary(begun.plan, options),
        warmup={"requests": options.warmup, "e2e_s": begun.warmup_s},
        passes=[],
        validity=Validity(verdict="valid", findings=list(remarks)),
        counts=Counts(planned=planned, sent=0, succeeded=0, unsent=planned),
        calibration=begun.calibration,
    )


def _unsent(begun: Beginning, course: Course) -> Iterator[RequestRecord]:
    """Requests that were planned and never started; passes that never began, too."""
    options = begun.options
    if options.open_ended:
        for todo in begun.passes:
            sender, tally = course.senders.get(todo.name), course.ledger.of(todo)
            tally.planned, tally.left_out = sender.started if sender else 0, 0
        return
    end_us = max((window.end_us for window in course.windows), default=0)
    for todo in begun.passes:
        sender, tally = course.senders.get(todo.name), course.ledger.of(todo)
        tally.left_out = 0
        for record in sender.unsent() if sender else todo.records(end_us):
            tally.left_out += 1
            yield record


def _remarks(writer: RunWriter, watch: ServerWatch) -> Iterator[Finding]:
    if writer.disk_full is not None:
        text = f"the disk was full, and the run ended there: {writer.disk_full}"
        yield Finding(check="disk", severity=INVALID, text=text)
    elif writer.journal_lost is not None:
        text = f"the run went on without its journal, which the disk refused: {writer.journal_lost}"
        yield Finding(check="journal", severity=NOTE, text=text)
    for note in watch.monitor.notes if watch.monitor else ():
        yield Finding(check="server_metrics", severity=NOTE, text=note)


async def _counted(path: Path, n: int, adapter: ServingAdapter, server: ServerInfo) -> Finding:
    """Have the tokenizer count the answers whose tokens the server did not say."""
    text = f"the server did not say how many tokens {n} answers were"
    if not server.capabilities.counts_tokens:
        return Finding(check="token_counts", severity=NOTE, text=f"{text}, and nobody can count")
    try:
        await fill_output_tokens(path, adapter)
        text += "; its tokenizer counted them"
    except (ServingError, RunError) as error:
        text += f", and its tokenizer could not count them: {error}"
    return Finding(check="token_counts", severity=NOTE, text=text)


def _trace_ref(trace: Trace) -> TraceRef:
    return TraceRef(name=trace.manifest.name, path=str(trace.path), sha256=trace.sha256)


def _target(begun: Beginning, adapter: str) -> Target:
    server = begun.server
    return Target(
        url=begun.url,
        adapter=adapter,
        server=server.server,
        server_version=server.version,
        model=server.model,
        embedded=begun.embedded,
        settings=server.settings,
    )
