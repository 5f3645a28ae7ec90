"""Extracts text in worker processes, so that parsing delays nobody's clock."""

import asyncio
import os
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from s2l.collectors import failure
from s2l.collectors.extraction.extracted import Extracted
from s2l.collectors.extraction.worker import Worker, WorkerEnded
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.page import Fetched

_IN_HAND: Final = 2
"""Pages that a worker has at once: the next is there when it has done one."""


class ExtractorError(Exception):
    """The worker processes cannot be started."""


class Extractor:
    """A pool of worker processes, started and warm once entered: an async context manager.

    A page may take ``limit_s`` and ``memory_bytes``; the worker of one that takes more is ended,
    and another takes its place.
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        limit_s: float = 20.0,
        memory_bytes: int = 1_000_000_000,
    ) -> None:
        self._n = workers or max(1, min(4, (os.cpu_count() or 2) - 1))
        self._limit_s = limit_s
        self._memory_bytes = memory_bytes
        self._free: asyncio.Queue[Worker] = asyncio.Queue()
        self._all: set[Worker] = set()
        self._replacing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        workers = [self._new() for _ in range(self._n)]
        try:
            await asyncio.gather(*(worker.start() for worker in workers))
        except (OSError, BrokenProcessPool) as error:
            self._close()
            raise ExtractorError(f"text extraction workers did not start: {error!r}") from error
        for worker in workers:
            self._add(worker)
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

    async def read(self, page: Fetched) -> Extracted:
        """The page's title and text, which may be empty: in a worker, as soon as one is free.

        Raises:
            Failure: ``extract_failed``; beyond a limit ``extract_timeout``, ``extract_memory``.
        """
        while True:
            worker = await self._free.get()
            try:
                return await worker.run(page, self._limit_s)
            except WorkerEnded:
                continue
            except TimeoutError:
                raise Failure(failure.EXTRACT_TIMEOUT, f"over {self._limit_s:g} s") from None
            except BrokenProcessPool:
                raise Failure(failure.EXTRACT_FAILED, "the worker process died") from None
            finally:
                self._give_back(worker)

    def _give_back(self, worker: Worker) -> None:
        if not worker.has_ended():
            self._free.put_nowait(worker)
        elif worker in self._all:
            self._all.discard(worker)
            task = asyncio.create_task(self._replace())
            self._replacing.add(task)
            task.add_done_callback(self._replacing.discard)

    async def _replace(self) -> None:
        worker = self._new()
        # One that does not start is put in all the same: its pages fail, and none waits for ever.
        with suppress(OSError, BrokenProcessPool):
            await worker.start()
        self._add(worker)

    def _add(self, worker: Worker) -> None:
        for _ in range(_IN_HAND):
            self._free.put_nowait(worker)

    def _new(self) -> Worker:
        worker = Worker(self._memory_bytes)
        self._all.add(worker)
        return worker

    def _close(self) -> None:
        for worker in self._all:
            worker.kill()
        self._all.clear()
