"""A pass: one delivery of all requests, encoded and scheduled before anything is timed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from s2l.replayer.context import ContextPlan
from s2l.replayer.delivery import DELIVERIES
from s2l.replayer.plan import Plan, QueryPlan
from s2l.replayer.record import ChunkSend, QuerySend, RequestRecord
from s2l.serving_adapter.base import PreparedRequest, ServingAdapter


@dataclass(frozen=True, slots=True)
class Pass:
    """One delivery, at one moment of asking, of a plan's requests or of some of them.

    ``numbers`` are the requests by their place in the whole schedule and ``starts_us`` their
    starts since the pass began; request n sends query n modulo the number of queries.
    """

    run_id: str
    delivery: str
    answer_at: str | None
    rate: float | None
    queries: tuple[QuerySend, ...]
    numbers: npt.NDArray[np.int64]
    starts_us: npt.NDArray[np.int64]
    worker: int | None = None

    @property
    def name(self) -> str:
        """``stream``, or ``stream@50%`` where the question comes earlier."""
        return self.delivery if self.answer_at is None else f"{self.delivery}@{self.answer_at}"

    def __len__(self) -> int:
        return len(self.numbers)

    def record(self, index: int, start_us: int) -> RequestRecord:
        """A record of the request at ``index`` of ``numbers``, in a pass that begins then."""
        number = int(self.numbers[index])
        repeat, query = divmod(number, len(self.queries))
        intended_us = start_us + int(self.starts_us[index])
        return RequestRecord(
            request_id=f"{self.name}-{number:05d}",
            query=self.queries[query],
            delivery=self.delivery,
            number=number,
            start_intended_us=intended_us,
            eligible_us=intended_us,
            rate=self.rate,
            repeat=repeat,
            answer_at=self.answer_at,
            worker=self.worker,
        )

    def records(self, start_us: int, first: int = 0) -> Iterator[RequestRecord]:
        """Those of all requests from ``first`` on."""
        return (self.record(index, start_us) for index in range(first, len(self)))

    def salt(self, record: RequestRecord) -> str:
        """What keeps a request's cache apart from that of every other request of every run: what
        is measured is what streaming saves, not what one pass left there for the next."""
        return f"{self.run_id}/{record.request_id}"

    def slice_for(self, worker: int, workers: int) -> "Pass":
        """Every ``workers``-th request, beginning with number ``worker``."""
        part = slice(worker, None, workers)
        return Pass(
            self.run_id,
            self.delivery,
            self.answer_at,
            self.rate,
            self.queries,
            self.numbers[part],
            self.starts_us[part],
            worker,
        )


def plan_pass(
    plan: Plan, delivery: str, answer_at: str | None, *, run_id: str, rate: float | None
) -> Pass:
    """The pass of a delivery over a plan, with nothing encoded yet."""
    return Pass(
        run_id,
        delivery,
        answer_at,
        rate,
        tuple(_send(query, delivery, answer_at) for query in plan.queries),
        np.arange(len(plan.starts_us)),
        plan.starts_us,
    )


def prepare(
    plan: Plan, delivery: str, answer_at: str | None, adapter: ServingAdapter, max_tokens: int
) -> list[PreparedRequest]:
    """Each query of a plan encoded as the delivery sends it, once."""
    return [
        adapter.prepare(query.prompt(_context(query, delivery, answer_at), max_tokens))
        for query in plan.queries
    ]


def _context(query: QueryPlan, delivery: str, answer_at: str | None) -> ContextPlan:
    """What the delivery sends: all changes, or those that the last state is made of."""
    arrived = query.context.until(query.ask_us(answer_at))
    return arrived if delivery == "stream" else arrived.final()


def _send(query: QueryPlan, delivery: str, answer_at: str | None) -> QuerySend:
    context, due_us = _context(query, delivery, answer_at), query.ask_us(answer_at)
    rule = DELIVERIES[delivery]
    sized = zip(context.chunks, context.sizes(), strict=True)
    chunks = tuple(
        ChunkSend(
            seq=seq,
            kind=chunk.kind,
            arrival_us=chunk.arrival_us,
            send_us=rule(chunk.arrival_us, due_us),
            tokens=tokens,
            context_tokens=total,
            kept_tokens=kept,
            doc_ids=chunk.doc_ids,
        )
        for seq, (chunk, (tokens, total, kept)) in enumerate(sized)
    )
    return QuerySend(query.query.query_id, due_us, chunks)


def passes_of(
    plan: Plan,
    deliveries: Sequence[str],
    points: Sequence[str | None],
    *,
    run_id: str,
    rate: float | None,
) -> list[Pass]:
    """Every delivery at every moment of asking, in the order in which they are replayed."""
    return [
        plan_pass(plan, delivery, point, run_id=run_id, rate=rate)
        for point in points
        for delivery in deliveries
    ]
