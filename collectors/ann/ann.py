"""The collector: has questions searched for, and hands over every change with its own times."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from s2l.collectors.ann.exact import recall
from s2l.collectors.ann.latency import LatencyModel
from s2l.collectors.ann.progressive_search import Search, Update
from s2l.collectors.ann.searchers import Searcher
from s2l.collectors.ann.stage import Question
from s2l.collectors.record import Recorder
from s2l.workloads.arrival import ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.query import Query

NO_WORDS: Final = "no_words"
"""The status of a question that has no letter and no digit: there is nothing to look for."""

_WORD: Final = re.compile(r"\w")


def has_words(text: str) -> bool:
    """Whether there is a letter or a digit in it."""
    return _WORD.search(text.replace("_", "")) is not None


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is known of a question before it is asked: its place in the capture, its vector, and
    the rows that an exact search finds, which recall is measured against."""

    number: int
    question: Question
    exact: tuple[int, ...]


class Ann:
    """Searches one index for many questions at once.

    How one question's times depend on others: they share the index, the memory's bandwidth and
    the processor's caches, as those of any service do, and they wait for their turn where more
    are asked at once than may search (``queued_us`` in the first arrival's meta). What this
    program does besides, as recording, is not in them: they are taken where the search runs, in
    a process of its own (see ``ProcessSearcher``), and handed over afterwards. The one time that
    is taken here is that of ``end``.

    Under a latency model the real search is done first, and its updates are then handed over when
    they are due, so that questions overlap as they would on such a service.
    """

    def __init__(
        self,
        passages: Sequence[Document],
        prepared: Mapping[str, Prepared],
        searcher: Searcher,
        latency: LatencyModel,
        *,
        k: int,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._passages = passages
        self._prepared = prepared
        self._searcher = searcher
        self._latency = latency
        self._k = k
        self._sleep = sleep

    async def retrieve(self, query: Query, record: Recorder) -> None:
        """Search, and record a ``replace`` for every change of the first k documents."""
        if not has_words(query.text):
            detail = "the question has no word in it; ask with words"
            record.arrived(ArrivalKind.SEARCH, start_us=0, status=NO_WORDS, detail=detail)
            return
        prepared = self._prepared[query.query_id]
        real = await self._searcher.search(prepared.question, record)
        timed = self._latency.timed(prepared.number, real)
        for update, measured in zip(timed.updates, real.updates, strict=True):
            await self._until(update.at_us, record)
            meta = self._meta(measured, real, prepared.exact)
            self._hand_over(update, meta, record)
        await self._until(timed.end_us, record)

    async def _until(self, due_us: int, record: Recorder) -> None:
        while (left_us := due_us - record.now_us()) > 0:
            await self._sleep(left_us / 1e6)

    def _hand_over(self, update: Update, meta: Mapping[str, Any], record: Recorder) -> None:
        record.arrived_at(
            update.at_us,
            ArrivalKind.REPLACE,
            start_us=update.start_us,
            documents=[self._passages[row] for row in update.rows],
            meta=meta,
        )

    def _meta(self, update: Update, search: Search, exact: Sequence[int]) -> dict[str, Any]:
        """Stage, step, recall so far, the measured time since the search began, its whole time."""
        meta: dict[str, Any] = {
            "stage": update.stage,
            "step": update.step,
            "recall": round(recall(update.rows, exact), 4),
            "search_us": update.at_us - search.start_us,
        }
        if (shortfall := self._k - len(update.rows)) > 0:
            meta["shortfall"] = shortfall
        if update is search.updates[0]:
            meta["queued_us"] = search.start_us
        if update is search.updates[-1]:
            meta |= {"search_end_us": search.end_us - search.start_us, "steps": dict(search.steps)}
        return meta
