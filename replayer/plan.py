"""What a replay will send, worked out before anything is timed."""

from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import numpy.typing as npt

from s2l.replayer.context import ChunkPlan, ContextPlan, ordered
from s2l.replayer.document_order import ORDERS
from s2l.replayer.options import ReplayOptions
from s2l.serving_adapter.base import Prompt, ServerInfo, ServingAdapter, ServingError
from s2l.workloads.arrival import OK, ArrivalKind
from s2l.workloads.arrival_process import arrival_process
from s2l.workloads.query import Query
from s2l.workloads.retrieval import Retrieval
from s2l.workloads.trace import Trace

INSTRUCTIONS = (
    "Answer the question based only on the provided context. "
    'If the answer is not in the context, say "I don\'t know."\nContext:\n'
)
"""The preamble of the published Stream2LLM experiments."""

QUESTION_ROOM = 512
"""Tokens kept for instructions, template and question when contexts are checked for length."""


class PlanError(Exception):
    """A trace that cannot be replayed as asked; one line."""


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """One query: when it starts (µs since its pass began), and how its context comes.

    ``due_us``, since the query's start, is when the retrieval ended.
    """

    query: Query
    start_us: int
    due_us: int
    context: ContextPlan

    def prompt(self, context: ContextPlan, max_output_tokens: int, cache_salt: str) -> Prompt:
        """What is sent for it, with its context or a part of it."""
        return Prompt(
            instructions=INSTRUCTIONS,
            chunks=context.wire(),
            question=f"Question: {self.query.text}",
            max_output_tokens=max_output_tokens,
            cache_salt=cache_salt,
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """All queries of a pass. ``unfinished`` were left out: their retrieval never ended."""

    queries: tuple[QueryPlan, ...]
    unfinished: int


async def plan_queries(
    trace: Trace, adapter: ServingAdapter, options: ReplayOptions, server: ServerInfo
) -> Plan:
    """Which queries are sent when, with contexts cut and counted by the server's tokenizer.

    Raises:
        PlanError: the trace cannot be replayed as asked, or a context does not fit the model.
        ServingError: the server cannot count tokens, and contexts are to be cut.
    """
    plan = _read(trace, options)
    plan = _with_starts(plan, _starts_us(plan, options))
    if options.context_tokens is not None:
        plan = await _with_budget(plan, adapter, options.context_tokens)
    plan = await _with_token_counts(plan, adapter)
    _check_length(plan, options, server)
    return plan


def _read(trace: Trace, options: ReplayOptions) -> Plan:
    """The trace's first finished queries, all starting at 0, with their retrieval times scaled."""
    finished = (r for r in trace.retrievals() if r.finished)
    chosen = list(islice(finished, options.n_queries))
    counts = trace.manifest.counts
    if not chosen:
        raise PlanError(f"{trace.path}: no query in it has a finished retrieval; record one first")
    if options.n_queries is not None and len(chosen) < options.n_queries:
        raise PlanError(f"--queries {options.n_queries}: {trace.path} has only {len(chosen)}")
    wanted = {doc for r in chosen for a in r.arrivals for doc in a.doc_ids}
    texts = {doc.doc_id: f"{doc.text}\n" for doc in trace.documents(wanted) if doc.text is not None}
    if hidden := len(wanted) - len(texts):
        raise PlanError(f"{trace.path}: {hidden} documents in it have no text to replay")
    queries = tuple(_query_plan(r, texts, options) for r in chosen)
    return Plan(queries, counts.queries - counts.finished_queries)


def _query_plan(r: Retrieval, texts: dict[str, str], options: ReplayOptions) -> QueryPlan:
    changes = [
        ChunkPlan(a.kind, round(a.arrival_us * options.time_scale), a.doc_ids)
        for a in r.arrivals
        if a.doc_ids or (a.kind is ArrivalKind.REPLACE and a.status == OK)
    ]
    chunks = ordered(changes, ORDERS[options.order])
    mine = {doc: texts[doc] for chunk in chunks for doc in chunk.doc_ids}
    due_us = round(r.arrivals[-1].arrival_us * options.time_scale)
    return QueryPlan(r.query, 0, due_us, ContextPlan(chunks, mine))


def _starts_us(plan: Plan, options: ReplayOptions) -> npt.NDArray[np.int64]:
    offsets = [query.query.offset_us for query in plan.queries]
    if options.rate_qps is None:
        return np.array(offsets) - min(offsets)
    process = arrival_process(options.arrivals)
    try:
        return process(len(offsets), options.rate_qps, options.seed, offsets)
    except ValueError as error:
        raise PlanError(str(error)) from None


def _with_starts(plan: Plan, starts_us: npt.NDArray[np.int64]) -> Plan:
    pairs = zip(plan.queries, starts_us, strict=True)
    return replace(plan, queries=tuple(replace(q, start_us=int(at)) for q, at in pairs))


async def _with_budget(plan: Plan, adapter: ServingAdapter, context_tokens: int) -> Plan:
    """A document that is cut keeps its newline at the end, which is within its share."""
    every = _every_text(plan)
    lengths = dict(zip(every, await adapter.count_tokens(list(every.values())), strict=True))
    limits: dict[tuple[int, str], int] = {}
    for number, query in enumerate(plan.queries):
        own = {doc: lengths[number, doc] for doc in query.context.texts}
        for doc, share in query.context.budgets(own, context_tokens).items():
            limits[number, doc] = share if share >= own[doc] else max(0, share - 1)
    cut = await adapter.truncate(list(every.values()), [limits[key] for key in every])
    shortened = {
        key: text if limits[key] >= lengths[key] else f"{text}\n" if limits[key] else ""
        for key, text in zip(every, cut, strict=True)
    }
    return _with_contexts(
        plan,
        [
            replace(q.context, texts={doc: shortened[n, doc] for doc in q.context.texts})
            for n, q in enumerate(plan.queries)
        ],
    )


async def _with_token_counts(plan: Plan, adapter: ServingAdapter) -> Plan:
    """The plan with the tokens of each document, where the server can count them."""
    every = _every_text(plan)
    try:
        counts = dict(zip(every, await adapter.count_tokens(list(every.values())), strict=True))
    except ServingError:
        return plan
    return _with_contexts(
        plan,
        [
            replace(q.context, tokens={doc: counts[n, doc] for doc in q.context.texts})
            for n, q in enumerate(plan.queries)
        ],
    )


def _every_text(plan: Plan) -> dict[tuple[int, str], str]:
    return {
        (number, doc): text
        for number, query in enumerate(plan.queries)
        for doc, text in query.context.texts.items()
    }


def _with_contexts(plan: Plan, contexts: list[ContextPlan]) -> Plan:
    pairs = zip(plan.queries, contexts, strict=True)
    return replace(plan, queries=tuple(replace(q, context=c) for q, c in pairs))


def _check_length(plan: Plan, options: ReplayOptions, server: ServerInfo) -> None:
    sizes = {q.query.query_id: q.context.largest() for q in plan.queries}
    known = {query_id: tokens for query_id, tokens in sizes.items() if tokens is not None}
    if not known or server.max_model_len is None:
        return
    query_id = max(known, key=lambda query_id: known[query_id])
    room = server.max_model_len - options.max_tokens - QUESTION_ROOM
    if known[query_id] > room:
        raise PlanError(
            f"the context of query {query_id} is {known[query_id]} tokens and the model takes "
            f"{server.max_model_len} in all; use --context-tokens {max(room, 1)} or less"
        )
