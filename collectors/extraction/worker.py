"""One worker process that extracts text, within limits of its own."""

import asyncio
import logging
import multiprocessing
import os
import resource
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from s2l.collectors import failure
from s2l.collectors.extraction.extracted import Extracted
from s2l.collectors.extraction.text import extract_text
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.page import Fetched

_START_S: Final = 60.0
_MOST_WORDS: Final = 200
_SIZE: Final = Path("/proc/self/statm")
_SAMPLE: Final = (
    b"<html><head><title>Sample</title></head><body><main><h1>Sample</h1>"
    b"<p>A paragraph that is long enough to be taken for the text of a page.</p>"
    b"</main></body></html>"
)


@dataclass(frozen=True, slots=True)
class _Problem:
    """Why a page has no text, in a form that every exception fits into."""

    status: str
    detail: str


class WorkerEnded(Exception):
    """The process was ended for a page before this one, which was not begun."""


class Worker:
    """A process of its own, because one that hangs can then be killed alone.

    It may be given the next page while it extracts one, and then goes on without a pause; a page's
    time counts from its turn. ``memory_bytes`` is what pages may take beyond what the process
    takes by itself.
    """

    def __init__(self, memory_bytes: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_prepare)
        self._pid: int | None = None
        self._turn = asyncio.Lock()
        self._ended = False
        self._memory_bytes = memory_bytes

    async def start(self) -> None:
        """Start the process and let it extract once, so that the first page is not slower.

        Raises:
            OSError: it does not start; TimeoutError, if not in time.
            BrokenProcessPool: it ended at once.
        """
        starting = asyncio.wrap_future(self._pool.submit(_warm_up, self._memory_bytes))
        self._pid = await asyncio.wait_for(starting, _START_S)

    async def run(self, page: Fetched, limit_s: float) -> Extracted:
        """Extract in the process, after the pages that it was given before.

        A page that goes beyond a limit, or ends the process otherwise, ends this worker.

        Raises:
            Failure: ``extract_memory``, ``extract_failed``.
            TimeoutError: the page took longer than ``limit_s``.
            BrokenProcessPool: the process died of it.
            WorkerEnded: the process had ended before; another worker can take the page.
        """
        if self.has_ended():
            raise WorkerEnded
        job = self._begin(page)
        async with self._turn:
            if self.has_ended():
                job.add_done_callback(_retrieve)
                raise WorkerEnded
            return await self._result(job, limit_s)

    def _begin(self, page: Fetched) -> "asyncio.Future[Extracted | _Problem]":
        try:
            job = self._pool.submit(_extract, page.body, page.mime, page.charset)
        except BrokenProcessPool:
            self.kill()
            raise
        return asyncio.wrap_future(job)

    async def _result(
        self, job: "asyncio.Future[Extracted | _Problem]", limit_s: float
    ) -> Extracted:
        try:
            found = await asyncio.wait_for(job, limit_s)
        except (TimeoutError, BrokenProcessPool):
            self.kill()
            raise
        if isinstance(found, _Problem):
            if found.status == failure.EXTRACT_MEMORY:
                self.kill()  # it may be in no state to go on
            raise Failure(found.status, found.detail)
        return found

    def has_ended(self) -> bool:
        """Whether it takes no more pages."""
        return self._ended

    def kill(self) -> None:
        """End the process at once, whatever it does."""
        self._ended = True
        # Among our living children only: the system may have given the number to another.
        for child in multiprocessing.active_children():
            if child.pid == self._pid:
                child.kill()
        self._pool.shutdown(wait=False)


def _retrieve(job: "asyncio.Future[Extracted | _Problem]") -> None:
    """Nobody waits for it any more; what became of it is no news."""
    if not job.cancelled():
        job.exception()


def _extract(body: bytes, mime: str, charset: str | None) -> Extracted | _Problem:
    """In a worker."""
    try:
        return extract_text(body, mime, charset)
    except MemoryError as error:
        return _Problem(failure.EXTRACT_MEMORY, str(error) or "out of memory")
    except Exception as error:
        words = f"{type(error).__name__}: {error}"[:_MOST_WORDS]
        return _Problem(failure.EXTRACT_FAILED, words)


def _prepare() -> None:
    """In a worker: leave Ctrl-C to the parent, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(5)  # the clock of what arrives meanwhile comes first
    # What they warn of (a page without text) becomes a row of the trace.
    for name in ("trafilatura", "htmldate", "pypdf", "charset_normalizer"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()


def _warm_up(memory_bytes: int) -> int:
    """In a worker: load everything, then limit what may be added to it."""
    extract_text(_SAMPLE, "text/html", "utf-8")
    _limit_memory(memory_bytes)
    return os.getpid()


def _limit_memory(more_bytes: int) -> None:
    """Let this process grow by so much, where it can be known how large it is (Linux)."""
    try:
        pages, _, _ = _SIZE.read_text().partition(" ")
    except FileNotFoundError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = int(pages) * resource.getpagesize() + more_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
