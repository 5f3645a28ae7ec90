"""What runs in each process of a scaled capture: one share, captured into a part of the trace."""

import asyncio
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from s2l.collecting.watch import Job, Watch
from s2l.collectors.collect import Progress
from s2l.replayer.scale_out.clock_offset import boot_id
from s2l.workloads.manifest import MANIFEST, decode_manifest
from s2l.workloads.trace_writer import recover
from s2l.workloads.wal import WAL

TOKEN: Final = "token"
"""A file with a secret: who reads it there sees the folder of the one that wrote it."""


SILENCE_S: Final = 60.0
"""A capture that nobody has asked for so long ends, and keeps what it has: its planner is gone."""


@dataclass(frozen=True, slots=True)
class Report:
    """How a capture goes: ``over`` once its part is a finished trace, or there is none."""

    progress: Progress
    waiting: Mapping[str, int]
    over: bool


@dataclass(frozen=True, slots=True)
class Part:
    """The files of a finished part, with their bytes; ``sha256`` is that of its manifest."""

    files: Mapping[str, int]
    sha256: str


class CaptureWorker:
    """Methods may be called from several threads; the capture has an event loop of its own.

    The part is written into the planner's own ``folder`` where this machine sees it, and else
    into a temporary one, from which it is fetched.
    """

    def __init__(self, folder: Path, token: str) -> None:
        self.shares_folder = _reads(folder / TOKEN, token)
        self._folder = folder
        self._own: Path | None = None
        self._path = folder
        self._watch = Watch()
        self._asked_s = time.monotonic()
        self._running: Future[Any] | None = None
        self._task: asyncio.Task[Any] | None = None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="s2l-capture", daemon=True).start()

    def whereabouts(self) -> tuple[str, int, str]:
        """Host, process id and boot id."""
        return socket.gethostname(), os.getpid(), boot_id()

    def now_ns(self) -> int:
        """This machine's monotonic clock."""
        return time.monotonic_ns()

    def prepare(self, name: str, job: Job) -> bool:
        """Open all that the job needs. Whether its part, ``name``, is in the planner's folder.

        Raises what opening raises.
        """
        if not self.shares_folder:
            self._own = Path(tempfile.mkdtemp(prefix="s2l-"))
        self._path = (self._own or self._folder) / name
        self._running = asyncio.run_coroutine_threadsafe(self._capture(job), self._loop)
        wait([self._running, self._watch.ready], return_when=FIRST_COMPLETED)
        if not self._watch.ready.done():
            self.discard()
            self._running.result()
        return self.shares_folder

    def begin(self, start_ns: int) -> None:
        """Capture, into a trace that has started at ``start_ns`` of this machine's clock."""
        self._asked_s = time.monotonic()
        self._loop.call_soon_threadsafe(self._watch.start, start_ns)
        self._loop.call_soon_threadsafe(self._end_when_alone)

    def report(self) -> Report:
        """How it goes. Raises what ended the capture, if that was an error."""
        self._asked_s = time.monotonic()
        running = self._running
        over = running is not None and running.done()
        if over and running is not None and not running.cancelled():
            running.result()
        return asyncio.run_coroutine_threadsafe(self._look(over), self._loop).result()

    def result(self) -> Any:
        """What a capture that came to its end returned; None for one that was stopped."""
        running = self._running
        return None if running is None or running.cancelled() else running.result()

    def drain(self) -> None:
        """Begin no further query."""
        self._loop.call_soon_threadsafe(self._watch.stop.set)

    def stop(self) -> None:
        """End at once, keeping what was captured."""
        if (task := self._task) is not None:
            self._loop.call_soon_threadsafe(task.cancel)

    def part(self) -> Part | None:
        """What there is to fetch: None where nothing was captured."""
        file = self._path / MANIFEST
        if not file.is_file():
            return None
        data = file.read_bytes()
        files = {entry.path: entry.bytes for entry in decode_manifest(data, file).files}
        return Part({**files, MANIFEST: len(data)}, sha256(data).hexdigest())

    def read(self, name: str, offset: int, length: int) -> bytes:
        """A piece of one of the part's files."""
        with (self._path / name).open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def discard(self) -> None:
        """Remove a temporary folder of its own."""
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)

    def _end_when_alone(self) -> None:
        left_s = self._asked_s + SILENCE_S - time.monotonic()
        if left_s > 0:
            self._loop.call_later(left_s, self._end_when_alone)
        else:
            self.stop()

    async def _look(self, over: bool) -> Report:
        return Report(self._watch.progress, dict(self._watch.waiting()), over)

    async def _capture(self, job: Job) -> Any:
        """Whatever ends it, its part is a finished trace then."""
        self._task = asyncio.current_task()
        try:
            return await job.capture(self._path, self._watch)
        finally:
            if (self._path / WAL).is_dir():
                recover(self._path)


def _reads(file: Path, token: str) -> bool:
    try:
        return file.read_text() == token
    except OSError:
        return False
