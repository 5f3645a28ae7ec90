"""What a replay will send, worked out before anything is timed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt

from s2l.replayer.answer_at import ask_us, points
from s2l.replayer.context import ChunkPlan, ContextPlan, ordered
from s2l.replayer.delivery import deliveries_named
from s2l.replayer.document_order import ORDERS
from s2l.replayer.options import ReplayOptions
from s2l.serving_adapter.base import Prompt, ServerInfo, ServingAdapter, ServingError
from s2l.workloads.arrival import OK, ArrivalKind
from s2l.workloads.arrivals.schedule import schedule_us
from s2l.workloads.query import Query
from s2l.workloads.retrieval import Retrieval
from s2l.workloads.trace import Trace

INSTRUCTIONS: Final = (
    "Answer the question based only on the provided context. "
    'If the answer is not in the context, say "I don\'t know."\nContext:\n'
)
"""The preamble of the published Stream2LLM experiments."""

QUESTION_ROOM: Final = 512
"""Tokens kept for instructions, template and question when contexts are checked for length."""

_CLOSED_LOOP_MOST: Final = 10_000_000
"""Requests of a closed loop that only its duration ends."""


class PlanError(Exception):
    """A trace that cannot be replayed as asked; one line."""


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """One query and how its context comes.

    ``due_us``, since the query's start, is when the retrieval ended.
    """

    query: Query
    due_us: int
    context: ContextPlan

    def ask_us(self, point: str | None) -> int:
        """When the question is asked, since the query's start."""
        return ask_us(point, self.due_us)

    def prompt(self, context: ContextPlan, max_output_tokens: int) -> Prompt:
        """What is sent for it, with its context or a part of it."""
        return Prompt(
            instructions=INSTRUCTIONS,
            chunks=context.wire(),
            question=f"Question: {self.query.text}",
            max_output_tokens=max_output_tokens,
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """The queries of a pass and its schedule: request n, of query n modulo their number, starts
    ``starts_us[n]`` after the pass began. ``unfinished`` were left out: their retrieval never
    ended."""

    queries: tuple[QueryPlan, ...]
    unfinished: int
    starts_us: npt.NDArray[np.int64]

    def dues_us(self) -> npt.NDArray[np.int64]:
        """For each request, when its context is due, since the pass began."""
        dues = np.array([query.due_us for query in self.queries], dtype=np.int64)
        found: npt.NDArray[np.int64] = (
            self.starts_us + dues[np.arange(len(self.starts_us)) % len(dues)]
        )
        return found


async def plan_queries(
    trace: Trace, adapter: ServingAdapter, options: ReplayOptions, server: ServerInfo
) -> Plan:
    """Which queries are sent when, with contexts cut and counted by the server's tokenizer.

    Raises:
        PlanError: the trace cannot be replayed as asked, or a context does not fit the model.
        ServingError: the server cannot count tokens, and contexts are to be cut.
    """
    _check_options(options)
    plan = _read(trace, options)
    plan = replace(plan, starts_us=_starts_us(plan, options))
    _check_capabilities(plan, options, server)
    if options.context_tokens is not None:
        plan = await _with_budget(plan, adapter, options.context_tokens)
    if server.capabilities.counts_tokens:
        plan = await _with_token_counts(plan, adapter)
    _check_length(plan, options, server)
    return plan


def _check_options(options: ReplayOptions) -> None:
    try:
        points(options.answer_at)
    except ValueError as error:
        raise PlanError(str(error)) from None
    if options.concurrency is not None and options.max_concurrency is not None:
        raise PlanError(
            "a closed loop (--concurrency) has no schedule to cap by --max-concurrency; give one"
        )
    if not 0 <= options.cancel_fraction <= 1:
        raise PlanError(f"--cancel-fraction {options.cancel_fraction}: it must be from 0 to 1")


def _check_capabilities(plan: Plan, options: ReplayOptions, server: ServerInfo) -> None:
    """What the server's adapter cannot do is said before anything is sent."""
    can = server.capabilities
    if "stream" in deliveries_named(options.delivery):
        if not can.streams_context:
            raise PlanError(f"{server.server} takes no context early; use --delivery wait")
        replaces = any(c.replaces for q in plan.queries for c in q.context.chunks)
        if replaces and not can.replaces_context:
            raise PlanError(
                f"{server.server} cannot replace context, and the trace does; use --delivery wait"
            )
    if options.context_tokens is not None and not can.counts_tokens:
        raise PlanError(
            f"{server.server} does not count tokens, so contexts cannot be cut; "
            "leave --context-tokens out"
        )


def _read(trace: Trace, options: ReplayOptions) -> Plan:
    """The trace's first finished queries in the order of their offsets, nothing scheduled yet."""
    finished = (r for r in trace.retrievals() if r.finished)
    chosen = sorted(islice(finished, options.n_queries), key=lambda r: r.query.offset_us)
    counts = trace.manifest.counts
    if not chosen:
        raise PlanError(f"{trace.path}: no query in it has a finished retrieval; record one first")
    wanted = {doc for r in chosen for a in r.arrivals for doc in a.doc_ids}
    found = trace.texts(wanted)
    texts = {doc_id: f"{text}\n" for doc_id, text in found.items() if text is not None}
    if hidden := len(wanted) - len(texts):
        raise PlanError(f"{trace.path}: {hidden} documents in it have no text to replay")
    queries = tuple(_query_plan(r, texts, options) for r in chosen)
    return Plan(queries, counts.queries - counts.finished_queries, np.zeros(0, dtype=np.int64))


def _query_plan(r: Retrieval, texts: dict[str, str], options: ReplayOptions) -> QueryPlan:
    changes = [
        ChunkPlan(a.kind, round(a.arrival_us * options.time_scale), a.doc_ids)
        for a in r.arrivals
        if a.doc_ids or (a.kind is ArrivalKind.REPLACE and a.status == OK)
    ]
    chunks = ordered(changes, ORDERS[options.order])
    mine = {doc: texts[doc] for chunk in chunks for doc in chunk.doc_ids}
    due_us = round(r.arrivals[-1].arrival_us * options.time_scale)
    return QueryPlan(r.query, due_us, ContextPlan(chunks, mine))


def _starts_us(plan: Plan, options: ReplayOptions) -> npt.NDArray[np.int64]:
    """The schedule; all zero for a closed loop, which has none."""
    n = None
    if options.n_queries is not None or options.repeat > 1:
        n = (options.n_queries or len(plan.queries)) * options.repeat
    if options.concurrency is not None:
        most = len(plan.queries) if options.duration_s is None else _CLOSED_LOOP_MOST
        return np.zeros(most if n is None else n, dtype=np.int64)
    try:
        starts_us = schedule_us(
            options.arrivals,
            rate_qps=options.rate_qps,
            seed=options.seed,
            recorded_us=[query.query.offset_us for query in plan.queries],
            n=n,
            duration_s=options.duration_s,
            burstiness=options.burstiness,
        )
    except ValueError as error:
        raise PlanError(str(error)) from None
    return starts_us


async def _with_budget(plan: Plan, adapter: ServingAdapter, context_tokens: int) -> Plan:
    """A document that is cut keeps its newline at the end, which is within its share."""
    every = _every_text(plan)
    lengths = dict(zip(every, await _counted(adapter, list(every.values())), strict=True))
    limits: dict[tuple[int, str], int] = {}
    for number, query in enumerate(plan.queries):
        own = {doc: lengths[number, doc] for doc in query.context.texts}
        for doc, share in query.context.budgets(own, context_tokens).items():
            limits[number, doc] = share if share >= own[doc] else max(0, share - 1)
    long = [key for key in every if limits[key] < lengths[key]]
    cut = await adapter.truncate([every[key] for key in long], [limits[key] for key in long])
    for key, text in zip(long, cut, strict=True):
        every[key] = f"{text}\n" if limits[key] else ""
    return _with_contexts(
        plan,
        [
            replace(q.context, texts={doc: every[n, doc] for doc in q.context.texts})
            for n, q in enumerate(plan.queries)
        ],
    )


async def _with_token_counts(plan: Plan, adapter: ServingAdapter) -> Plan:
    """The plan with the tokens of each document, where the server can count them."""
    every = _every_text(plan)
    try:
        counts = dict(zip(every, await _counted(adapter, list(every.values())), strict=True))
    except ServingError:
        return plan
    return _with_contexts(
        plan,
        [
            replace(q.context, tokens={doc: counts[n, doc] for doc in q.context.texts})
            for n, q in enumerate(plan.queries)
        ],
    )


async def _counted(adapter: ServingAdapter, texts: Sequence[str]) -> list[int]:
    """Tokens of each text; texts that are the same are counted once."""
    different = list(dict.fromkeys(texts))
    counts = dict(zip(different, await adapter.count_tokens(different), strict=True))
    return [counts[text] for text in texts]


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
        way_out = f"--context-tokens {room}" if room > 0 else "a smaller --max-tokens"
        raise PlanError(
            f"the context of query {query_id} is {known[query_id]} tokens and the model takes "
            f"{server.max_model_len} in all; use {way_out}{' or less' if room > 0 else ''}"
        )
