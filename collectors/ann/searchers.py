"""Where searches run, so that many go on at once and none disturbs another's times."""

import asyncio
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Final, Protocol, Self

from s2l.collectors.ann.errors import SearchFailed
from s2l.collectors.ann.faiss_library import one_core
from s2l.collectors.ann.progressive_search import ProgressiveSearch, Search
from s2l.collectors.ann.stage import Question
from s2l.collectors.record import Recorder


class Searcher(Protocol):
    """Runs searches, so many at a time; the others wait."""

    async def search(self, question: Question, record: Recorder) -> Search:
        """The search, with times since the start of the recorder's query."""


class ProcessSearcher:
    """Processes that share the index's memory, each searching on one core.

    They are forked from this one when the searcher is entered, before any capture. Between two
    steps of a search there are some microseconds of Python; threads would wait there for one
    another's lock, and for the capture's (measured: two threads take half as long again for each
    search, two processes 3 % longer). Times are taken in the process that searches, by the
    system's monotonic clock, which is that of the capture.
    """

    def __init__(self, search: ProgressiveSearch, workers: int) -> None:
        fork = multiprocessing.get_context("fork")
        self._executor = ProcessPoolExecutor(workers, fork, _begin, (search,))

    def __enter__(self) -> Self:
        self._executor.submit(os.getpid).result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._executor.shutdown(cancel_futures=True)

    async def search(self, question: Question, record: Recorder) -> Search:
        """The search.

        Raises:
            SearchFailed: a process was killed.
        """
        try:
            found: Future[Search] = self._executor.submit(_run, question, record.start_ns)
            return await asyncio.wrap_future(found)
        except BrokenProcessPool:
            text = (
                "a search process was killed; it may have been out of memory: use fewer --searches"
            )
            raise SearchFailed(text) from None


_searches: Final[list[ProgressiveSearch]] = []
"""In a process that searches: what it searches with."""


def _begin(search: ProgressiveSearch) -> None:
    """Prepare a process that was just forked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that captures
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    one_core()
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)  # the threads of the parent did not come along
    _searches.append(search)


def _run(question: Question, start_ns: int) -> Search:
    return _searches[0].run(question, lambda: (time.monotonic_ns() - start_ns) // 1000)


class ThreadSearcher:
    """Threads of this process: for an index or a reranker on a GPU, which no other can use.

    A search here can be held up by Python code of another, a few microseconds a step.
    """

    def __init__(self, search: ProgressiveSearch, workers: int) -> None:
        self._search = search
        self._executor: Executor = ThreadPoolExecutor(workers, "ann", initializer=one_core)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._executor.shutdown(cancel_futures=True)

    async def search(self, question: Question, record: Recorder) -> Search:
        """The search, by the recorder's own clock."""
        now_us: Callable[[], int] = record.now_us
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, self._search.run, question, now_us)
