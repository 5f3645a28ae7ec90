"""From jobs for several workers to one trace."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from s2l.collecting.crew import ScaledCapture, Show
from s2l.collecting.parts import parts_folder
from s2l.collecting.watch import Job
from s2l.progress import say
from s2l.replayer.scale_out.crew import Crew
from s2l.workloads.errors import TraceError
from s2l.workloads.manifest import Collector
from s2l.workloads.merging import merge_traces
from s2l.workloads.plural import counted
from s2l.workloads.query import Query
from s2l.workloads.retrieval import Retrieval
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter

_NAMED: Final = 10
"""Unfinished queries that are named; the others are counted."""

Display = Callable[[ScaledCapture], Show]
"""What shows the progress of a capture."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a capture ended: what became of lost workers, and which queries have no end."""

    lost: Sequence[str]
    unfinished: Sequence[str]

    @property
    def finished(self) -> bool:
        """Whether every query was captured to its end."""
        return not self.unfinished

    def check(self, advice: str) -> None:
        """Name the lost workers, and what nobody has finished; ``advice`` is the command to go on.

        Raises:
            click.ClickException: a worker was lost before its end.
        """
        for text in self.lost:
            say(text)
        if self.finished or not self.lost:
            return
        named = ", ".join(self.unfinished[:_NAMED])
        more = len(self.unfinished) - _NAMED
        rest = f" and {more} more" if more > 0 else ""
        raise click.ClickException(
            f"not finished: {counted(len(self.unfinished), 'query', 'queries')} ({named}{rest}); "
            f"what was captured is kept, go on with: {advice}"
        )


async def capture_with(
    crew: Crew,
    jobs: Sequence[Job],
    queries: Sequence[Query],
    path: Path,
    *,
    collector: Collector,
    licence: str,
    display: Display,
) -> Outcome:
    """Capture all queries into one trace at ``path``, each worker its own job.

    The trace is finished when every query has its end. Else it stays as an interrupted capture
    does, with everything that arrived, to be resumed or recovered.

    Raises:
        WorkerLost: a worker died before anything was captured. And what opening a job raises.
        TraceError: the folder is not empty, or the disk would not take the trace.
    """
    check_empty(path)
    with parts_folder(path) as (folder, token):
        capture = ScaledCapture(crew, folder, token)
        await capture.prepare(jobs)
        await capture.run(display(capture))
        parts = await capture.parts()
        with TraceWriter.create(
            path,
            name=path.name,
            collector=with_workers(collector, capture),
            licence=licence,
            created_utc=capture.started_utc,
            queue=queries,
        ) as writer:
            unfinished = await asyncio.to_thread(_merged, parts, writer, queries)
            if not unfinished:
                await asyncio.to_thread(writer.finish)
    return Outcome(capture.lost, unfinished)


def with_workers(collector: Collector, capture: ScaledCapture) -> Collector:
    """The collector, with how many made the trace and how far apart their clocks were at most."""
    workers: dict[str, Any] = {"workers": len(capture.shares)}
    workers["clock_error_us"] = capture.clock_error_us
    options = {**collector.options, **workers}
    return Collector(collector.name, collector.version, options, collector.seed)


def check_empty(path: Path) -> None:
    """Raises TraceError where a trace cannot be written, before anything is begun."""
    if path.is_file():
        raise TraceError(f"{path}: is a file; name a new folder for the trace")
    if path.is_dir() and any(path.iterdir()):
        raise TraceError(f"{path}: not empty; name a new folder for the trace")


def _merged(parts: Sequence[Trace], writer: TraceWriter, queries: Sequence[Query]) -> list[str]:
    """Merge, and tell which of the queries have no end."""
    left = dict.fromkeys(query.query_id for query in queries)

    def note(retrieval: Retrieval) -> None:
        if retrieval.finished:
            left.pop(retrieval.query.query_id, None)

    merge_traces(parts, writer, merged=note)
    return list(left)
