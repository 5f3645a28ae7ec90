"""An import on several workers: who reads what, and how the parts are one trace again."""

import asyncio
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import click

from s2l.collecting.crew import ScaledCapture
from s2l.collecting.parts import parts_folder
from s2l.collecting.run import Display, check_empty
from s2l.collecting.share import ByFiles, ByRows, Share
from s2l.collecting.watch import Watch
from s2l.collectors.collect import Progress
from s2l.replayer.scale_out.crew import WorkerLost
from s2l.scale import Scale
from s2l.workloads.errors import ImportFailed
from s2l.workloads.formats.base import Format, ImportOptions, Record
from s2l.workloads.formats.delays import Offsets
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.importing import Provenance, import_trace
from s2l.workloads.formats.registry import FORMATS
from s2l.workloads.formats.stream2llm_crawl import query_files
from s2l.workloads.manifest import Collector, Manifest
from s2l.workloads.merging import merge_traces
from s2l.workloads.synth.text import text_maker
from s2l.workloads.synth.unfinished import unfinished_removed
from s2l.workloads.token_counter import token_counter
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter

BY_FILES: Final = ("stream2llm-crawl",)
BY_ROWS: Final = ("mooncake", "timed-trace", "guidellm", "azure", "burstgpt", "ragpulse")
"""Rows of lengths, whose texts are made: that is the work, and reading is nearly none."""

_STEPS: Final = 1000


class _Stopped(Exception):
    """An import that is to stop."""


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """What ``s2l dataset import`` was asked for."""

    source: Path
    format: str
    provenance: Provenance
    options: ImportOptions
    tokenizer: Path | None
    strict: bool

    def shares(self, workers: int) -> Sequence[Share]:
        """Who reads what.

        Raises:
            click.UsageError: the format cannot be shared.
            ImportFailed: there is no such source.
        """
        if not self.source.exists():
            raise ImportFailed(f"{self.source}: no such file or folder; name what to import")
        if self.format in BY_ROWS:
            return [ByRows(worker, workers) for worker in range(workers)]
        if self.format in BY_FILES and self.source.is_dir():
            return ByFiles.of([file.absolute() for _, file in query_files(self.source)], workers)
        raise click.UsageError(
            f"{self.source} is read by one process: leave out --workers and --ray, which are for a "
            f"folder of {', '.join(BY_FILES)} and for rows of {', '.join(BY_ROWS)}"
        )


@dataclass(frozen=True, slots=True)
class ImportJob:
    """One worker's share of an import."""

    request: ImportRequest
    share: Share

    async def capture(self, path: Path, watch: Watch) -> ImportLog:
        """Import into a part; there is none where nothing falls to this share.

        Raises what ``import_trace`` does.
        """
        source = self.request.source
        if not source.exists():
            raise ImportFailed(
                f"{source}: is not on {socket.gethostname()}; every machine of the cluster needs "
                "it at this path"
            )
        watch.update(Progress(0, _STEPS, {}))
        await watch.begin()
        stopped = asyncio.Event()
        reading = asyncio.get_running_loop().run_in_executor(
            None, self._import, path, _teller(watch, stopped)
        )
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            stopped.set()
            with suppress(Exception):  # it ends by what it was stopped with, or has ended before
                await reading
            raise

    def _import(self, path: Path, tell: Callable[[int, int], None]) -> ImportLog:
        request, log = self.request, ImportLog(strict=self.request.strict, tell=tell)
        reader = _Reader(FORMATS[request.format], self.share)
        texts = text_maker(request.provenance.seed, token_counter(request.tokenizer))
        shared = replace(reader.format, read=reader)
        args = (request.source, shared, path, texts, request.provenance)
        try:
            import_trace(*args, replace(request.options, delays=None), log)
        except ImportFailed:
            if not reader.ended or reader.found:
                raise
        log.tell = _ignored
        return log


@dataclass(slots=True)
class _Reader:
    """A format's reader that reads one share, and remembers whether there was anything."""

    format: Format
    share: Share
    found: bool = False
    ended: bool = False

    def __call__(self, source: Path, options: ImportOptions, log: ImportLog) -> Iterator[Record]:
        for record in self.share.read(self.format, source, options, log):
            self.found = True
            yield record
        self.ended = True


def _teller(watch: Watch, stopped: asyncio.Event) -> Callable[[int, int], None]:
    """Takes note of how far reading is, and ends it when it is to stop."""

    def tell(done: int, total: int) -> None:
        if stopped.is_set() or watch.stop.is_set():
            raise _Stopped
        watch.update(Progress(_STEPS * done // max(1, total), _STEPS, {}))

    return tell


def _ignored(done: int, total: int) -> None:
    """Of a log that is read no more."""


async def import_with(
    scale: Scale, request: ImportRequest, out: Path, display: Display
) -> tuple[Manifest, ImportLog]:
    """Import into a new trace folder, on several workers: the trace of one process.

    Raises:
        click.UsageError: the format cannot be shared.
        ImportFailed, TraceError: what ``import_trace`` raises.
        RayMissing, WorkerLost: nothing is kept then.
        KeyboardInterrupt: it was interrupted; nothing is kept.
    """
    check_empty(out)
    request = replace(
        request,
        source=request.source.absolute(),
        tokenizer=request.tokenizer.absolute() if request.tokenizer else None,
    )
    jobs = [ImportJob(request, share) for share in request.shares(scale.workers)]
    with scale.crew() as crew, parts_folder(out, keep=False) as (folder, token):
        capture = ScaledCapture(crew, folder, token, all_or_nothing=True)
        await capture.prepare(jobs)
        await capture.run(display(capture))
        if capture.interrupted:
            raise KeyboardInterrupt
        parts = await capture.parts()
        _check_whole(capture)
        log = _log_of(request, [share.result for share in capture.shares])
        return await asyncio.to_thread(_merged, parts, request, out, scale.workers, log), log


def _check_whole(capture: ScaledCapture) -> None:
    """Raises what ended a worker's import, where one did not come to its end."""
    for share in capture.shares:
        if share.error is not None:
            raise share.error
        if share.lost is not None:
            raise WorkerLost(f"{share.lost}; nothing was imported")


def _log_of(request: ImportRequest, logs: Sequence[ImportLog]) -> ImportLog:
    """One log of all: of rows that everybody has read, or of files that each read alone."""
    if request.format in BY_ROWS:
        return logs[0]
    whole = ImportLog(strict=request.strict)
    for log in logs:
        whole.files += log.files
        whole.rows += log.rows
        whole.bad += log.bad
        whole.bad_files += log.bad_files
        whole.side_rows += log.side_rows
        whole.listed = (whole.listed + log.listed)[: ImportLog.LISTED]
        whole.warnings += log.warnings
        whole.facts |= log.facts
    return whole


def _merged(
    parts: Sequence[Trace], request: ImportRequest, out: Path, workers: int, log: ImportLog
) -> Manifest:
    provenance, delays = request.provenance, request.options.delays
    if not parts:
        why = f": {log.listed[0]}" if log.listed else ""
        raise ImportFailed(
            f"{request.source}: nothing in it can be imported as {request.format}{why}"
        )
    made = parts[0].manifest.collector
    delayed = {"delays": delays.name if delays else None, "workers": workers}
    collector = Collector(made.name, made.version, {**made.options, **delayed}, made.seed)
    name, licence = provenance.name, provenance.licence
    offsets_us = None if delays is None else _offsets_us(request.source, delays)
    with (
        unfinished_removed(out),
        TraceWriter.create(out, name=name, collector=collector, licence=licence) as writer,
    ):
        given = None if offsets_us is None else lambda query: offsets_us[query.query_id]
        merge_traces(parts, writer, offset_us=given)
        return writer.finish()


def _offsets_us(source: Path, delays: Path) -> dict[str, int]:
    """By query: each file has its own delay, those that are left out as well."""
    offsets = Offsets(delays)
    return {str(number): offsets.take() for number, _ in query_files(source)}
