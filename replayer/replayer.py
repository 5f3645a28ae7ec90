"""Replays one delivery of a plan: every query at its time, every piece of context at its own."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from s2l.replayer.context import ContextPlan
from s2l.replayer.delivery import DELIVERIES
from s2l.replayer.pacer import Pacer
from s2l.replayer.plan import QueryPlan
from s2l.replayer.record import ChunkRecord, RequestRecord
from s2l.serving_adapter.base import (
    Finished,
    Prefilled,
    PreparedRequest,
    ServingAdapter,
    ServingError,
    Session,
    TextDelta,
)


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A request that is encoded and scheduled; its record is filled while it runs."""

    request: PreparedRequest
    record: RequestRecord


def prepare_pass(
    queries: Sequence[QueryPlan],
    delivery: str,
    adapter: ServingAdapter,
    *,
    start_us: int,
    rate: float | None,
    max_output_tokens: int,
    run_id: str,
) -> list[PreparedQuery]:
    """Encode every request of a pass that starts at ``start_us`` of the run.

    Each request has a cache of its own where the server can do that: what is measured is what
    streaming saves, not what one pass left in the cache for the next.
    """
    prepared = []
    for number, query in enumerate(queries):
        context = query.context if delivery == "stream" else query.context.final()
        record = _record(query, context, delivery, number, start_us, rate)
        salt = f"{run_id}/{record.request_id}"
        request = adapter.prepare(query.prompt(context, max_output_tokens, salt))
        prepared.append(PreparedQuery(request, record))
    return prepared


def _record(
    query: QueryPlan,
    context: ContextPlan,
    delivery: str,
    number: int,
    start_us: int,
    rate: float | None,
) -> RequestRecord:
    start = start_us + query.start_us
    rule = DELIVERIES[delivery]
    sized = zip(context.chunks, context.sizes(), strict=True)
    chunks = [
        ChunkRecord(
            seq=seq,
            kind=chunk.kind,
            arrival_intended_us=start + chunk.arrival_us,
            send_intended_us=start + rule(chunk.arrival_us, query.due_us),
            tokens=tokens,
            context_tokens=total,
            kept_tokens=kept,
            doc_ids=chunk.doc_ids,
        )
        for seq, (chunk, (tokens, total, kept)) in enumerate(sized)
    ]
    return RequestRecord(
        request_id=f"{delivery}-{number:05d}",
        query_id=query.query.query_id,
        delivery=delivery,
        rate=rate,
        start_intended_us=start,
        context_intended_us=start + query.due_us,
        chunks=chunks,
    )


async def replay(
    prepared: Sequence[PreparedQuery],
    pacer: Pacer,
    *,
    timeout_s: float,
    on_end: Callable[[RequestRecord], None] = lambda _: None,
) -> None:
    """Run a pass; every record is filled when it returns, however it ends.

    Open loop: no request waits for another. Cancelling it ends what is under way as
    ``interrupted`` and leaves what was not started ``unsent``.
    """
    async with asyncio.TaskGroup() as group:
        for item in prepared:
            group.create_task(_replay_one(item, pacer, timeout_s, on_end))


async def _replay_one(
    item: PreparedQuery,
    pacer: Pacer,
    timeout_s: float,
    on_end: Callable[[RequestRecord], None],
) -> None:
    record = item.record
    await pacer.until(record.start_intended_us)
    record.start_us = pacer.now_us()
    record.error_type = "interrupted"
    limit_us = record.context_intended_us - record.start_us + int(timeout_s * 1e6)
    try:
        async with asyncio.timeout(limit_us / 1e6), item.request.open() as session:
            await _converse(session, record, pacer)
        record.error_type = None
    except ServingError as error:
        record.error_type, record.error = error.error_type, str(error)
    except TimeoutError:
        record.error_type = "timeout"
        record.error = f"no complete answer {timeout_s:g} s after the context was due"
    finally:
        record.end_us = record.end_us or pacer.now_us()
        on_end(record)


async def _converse(session: Session, record: RequestRecord, pacer: Pacer) -> None:
    """Send as scheduled while listening; a failure of either side ends both."""
    sending = asyncio.create_task(_send(session, record, pacer))
    listening = asyncio.create_task(_listen(session, record, pacer))
    try:
        done, _ = await asyncio.wait((sending, listening), return_when=asyncio.FIRST_EXCEPTION)
        # When the server refuses, sending fails too; what it said is the better reason.
        for task in sorted(done, key=lambda task: task is sending):
            task.result()
    finally:
        for task in (sending, listening):
            task.cancel()
        await asyncio.gather(sending, listening, return_exceptions=True)


async def _send(session: Session, record: RequestRecord, pacer: Pacer) -> None:
    for chunk in record.chunks:
        await pacer.until(chunk.send_intended_us)
        await session.send_chunk(chunk.seq)
        chunk.sent_us = pacer.now_us()
    await pacer.until(record.context_intended_us)
    await session.ask()
    record.context_us = pacer.now_us()


async def _listen(session: Session, record: RequestRecord, pacer: Pacer) -> None:
    async for event in session.events():
        now_us = pacer.now_us()
        match event:
            case TextDelta(text, tokens):
                record.token_us.append(now_us)
                record.token_n.append(1 if tokens is None else tokens)
                record.texts.append(text)
            case Prefilled(index, _):
                record.chunks[index].prefilled_us = now_us
            case Finished(usage, finish_reason):
                record.usage, record.finish_reason = usage, finish_reason
                record.end_us = now_us
