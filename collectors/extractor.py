"""Extracts text in worker processes, so that parsing delays nobody's clock."""

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from s2l.collectors import failure
from s2l.collectors.extract import Extracted, extract_text
from s2l.collectors.failure import Failure
from s2l.collectors.fetch import Fetched

_START_S: Final = 60.0
_SAMPLE: Final = (
    b"<html><head><title>Sample</title></head><body><main><h1>Sample</h1>"
    b"<p>A paragraph that is long enough to be taken for the text of a page.</p>"
    b"</main></body></html>"
)


class ExtractorError(Exception):
    """The worker processes cannot be started."""


class Extractor:
    """A pool of worker processes, started and warm once entered: an async context manager.

    Each worker is an executor of its own, because one that hangs can then be killed alone.
    """

    def __init__(self, *, workers: int | None = None, limit_s: float = 20.0) -> None:
        self._n = workers or max(1, min(4, (os.cpu_count() or 2) - 1))
        self._limit_s = limit_s
        self._free: asyncio.Queue[_Worker] = asyncio.Queue()
        self._all: set[_Worker] = set()
        self._replacing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        workers = [self._new() for _ in range(self._n)]
        try:
            await asyncio.gather(*(worker.start() for worker in workers))
        except (TimeoutError, BrokenProcessPool) as error:
            self._close()
            raise ExtractorError(f"text extraction workers did not start: {error!r}") from error
        for worker in workers:
            self._free.put_nowait(worker)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self._replacing:
            task.cancel()
        await asyncio.gather(*self._replacing, return_exceptions=True)
        self._close()

    async def extract(self, page: Fetched) -> Extracted:
        """The page's title and text, in a worker, as soon as one is free.

        Raises:
            Failure: ``empty``, ``extract_failed``, or ``extract_timeout`` beyond the limit.
        """
        worker = await self._free.get()
        usable = False
        try:
            found = await asyncio.wait_for(worker.run(page), self._limit_s)
            usable = True
        except TimeoutError:
            raise Failure(failure.EXTRACT_TIMEOUT, f"over {self._limit_s:g} s") from None
        except BrokenProcessPool:
            raise Failure(failure.EXTRACT_FAILED, "the worker process died") from None
        except Exception as error:
            usable = True
            raise Failure(failure.EXTRACT_FAILED, f"{type(error).__name__}: {error}") from error
        finally:
            self._give_back(worker, usable)
        if not found.text:
            raise Failure(failure.EMPTY, "no text in the page")
        return found

    def _give_back(self, worker: "_Worker", usable: bool) -> None:
        if usable:
            self._free.put_nowait(worker)
            return
        self._all.discard(worker)
        worker.kill()
        task = asyncio.create_task(self._replace())
        self._replacing.add(task)
        task.add_done_callback(self._replacing.discard)

    async def _replace(self) -> None:
        worker = self._new()
        # One that does not start is put in all the same: its pages fail, and none waits for ever.
        with suppress(TimeoutError, BrokenProcessPool):
            await worker.start()
        self._free.put_nowait(worker)

    def _new(self) -> "_Worker":
        worker = _Worker()
        self._all.add(worker)
        return worker

    def _close(self) -> None:
        for worker in self._all:
            worker.kill()
        self._all.clear()


class _Worker:
    """One process."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, context, initializer=_prepare)
        self._pid: int | None = None

    async def start(self) -> None:
        """Start the process and let it extract once, so that the first page is not slower."""
        starting = asyncio.wrap_future(self._pool.submit(_warm_up))
        self._pid = await asyncio.wait_for(starting, _START_S)

    async def run(self, page: Fetched) -> Extracted:
        """Extract in the process."""
        job = self._pool.submit(extract_text, page.body, page.mime, page.charset)
        return await asyncio.wrap_future(job)

    def kill(self) -> None:
        """End the process at once, whatever it does."""
        # Among our living children only: the system may have given the number to another.
        for child in multiprocessing.active_children():
            if child.pid == self._pid:
                child.kill()
        self._pool.shutdown(wait=False, cancel_futures=True)


def _prepare() -> None:
    """In a worker: leave Ctrl-C to the parent, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What it warns of (a page without text) becomes a row of the trace.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()


def _warm_up() -> int:
    extract_text(_SAMPLE, "text/html", "utf-8")
    return os.getpid()
