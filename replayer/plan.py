"""What a replay will send, worked out before anything is timed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import numpy.typing as npt

from s2l.replayer.context_budget import fair_shares
from s2l.replayer.options import ReplayOptions
from s2l.serving_adapter.base import Prompt, ServerInfo, ServingAdapter, ServingError
from s2l.workloads.arrival import ArrivalKind
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
class ChunkPlan:
    """One piece of context. ``arrival_us`` since the query's start; ``tokens`` where known."""

    kind: str
    arrival_us: int
    text: str
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """One query: when it starts (µs since its pass began), and how its context comes."""

    query: Query
    start_us: int
    due_us: int
    chunks: tuple[ChunkPlan, ...]

    def prompt(self, max_output_tokens: int, cache_salt: str) -> Prompt:
        """What is sent for it."""
        return Prompt(
            instructions=INSTRUCTIONS,
            chunks=tuple(chunk.text for chunk in self.chunks),
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
    plan = read_plan(trace, n_queries=options.n_queries, time_scale=options.time_scale)
    plan = with_starts(plan, _starts_us(plan, options))
    if options.context_tokens is not None:
        plan = await with_budget(plan, adapter, options.context_tokens)
    plan = await with_token_counts(plan, adapter)
    _check_length(plan, options, server)
    return plan


def read_plan(trace: Trace, *, n_queries: int | None, time_scale: float) -> Plan:
    """The trace's first finished queries, all starting at 0, with their retrieval times scaled.

    Raises:
        PlanError: too few queries are finished, or one has its context replaced (not yet possible).
    """
    finished = (r for r in trace.retrievals() if r.finished)
    chosen = list(islice(finished, n_queries))
    counts = trace.manifest.counts
    unfinished = counts.queries - counts.finished_queries
    if not chosen:
        raise PlanError(f"{trace.path}: no query in it has a finished retrieval; record one first")
    if n_queries is not None and len(chosen) < n_queries:
        raise PlanError(f"--queries {n_queries}: {trace.path} has only {len(chosen)}")
    wanted = {doc for r in chosen for a in r.arrivals for doc in a.doc_ids}
    texts = {doc.doc_id: doc.text for doc in trace.documents(wanted)}
    if hidden := sum(text is None for text in texts.values()):
        raise PlanError(
            f"{trace.path}: {hidden} documents come without text; it cannot be replayed"
        )
    return Plan(tuple(_query_plan(r, texts, time_scale) for r in chosen), unfinished)


def _query_plan(r: Retrieval, texts: dict[str, str | None], time_scale: float) -> QueryPlan:
    chunks = []
    for arrival in r.arrivals:
        if arrival.kind is ArrivalKind.REPLACE:
            raise PlanError(
                f"query {r.query.query_id}: replaced context cannot be replayed yet; use a crawl"
            )
        if arrival.doc_ids:
            text = "".join(f"{texts[doc]}\n" for doc in arrival.doc_ids)
            at_us = round(arrival.arrival_us * time_scale)
            chunks.append(ChunkPlan(arrival.kind, at_us, text))
    due_us = round(r.arrivals[-1].arrival_us * time_scale)
    return QueryPlan(r.query, 0, due_us, tuple(chunks))


def with_starts(plan: Plan, starts_us: npt.NDArray[np.int64]) -> Plan:
    """The plan with each query's start set."""
    pairs = zip(plan.queries, starts_us, strict=True)
    return replace(plan, queries=tuple(replace(q, start_us=int(at)) for q, at in pairs))


async def with_budget(plan: Plan, adapter: ServingAdapter, context_tokens: int) -> Plan:
    """The plan with each query's context cut to ``context_tokens``, by the server's tokenizer.

    A chunk that is cut keeps its newline at the end, which is within its share.
    """
    flat = [chunk for query in plan.queries for chunk in query.chunks]
    lengths = await adapter.count_tokens([chunk.text for chunk in flat])
    rest, shares = iter(lengths), list[int]()
    for query in plan.queries:
        shares += fair_shares([next(rest) for _ in query.chunks], context_tokens)
    longer = [length > share for length, share in zip(lengths, shares, strict=True)]
    limits = [max(0, s - 1) if cut else s for s, cut in zip(shares, longer, strict=True)]
    texts = await adapter.truncate([chunk.text for chunk in flat], limits)
    ends = ["\n" if cut and share else "" for cut, share in zip(longer, shares, strict=True)]
    cut_chunks = (
        replace(chunk, text=text + end) for chunk, text, end in zip(flat, texts, ends, strict=True)
    )
    return _with_chunks(plan, list(cut_chunks))


async def with_token_counts(plan: Plan, adapter: ServingAdapter) -> Plan:
    """The plan with the tokens of each chunk, where the server can count them."""
    flat = [chunk for query in plan.queries for chunk in query.chunks]
    try:
        counts = await adapter.count_tokens([chunk.text for chunk in flat])
    except ServingError:
        return plan
    return _with_chunks(plan, [replace(c, tokens=n) for c, n in zip(flat, counts, strict=True)])


def _starts_us(plan: Plan, options: ReplayOptions) -> npt.NDArray[np.int64]:
    offsets = [query.query.offset_us for query in plan.queries]
    if options.rate_qps is None:
        return np.array(offsets) - min(offsets)
    process = arrival_process(options.arrivals)
    try:
        return process(len(offsets), options.rate_qps, options.seed, offsets)
    except ValueError as error:
        raise PlanError(str(error)) from None


def _check_length(plan: Plan, options: ReplayOptions, server: ServerInfo) -> None:
    longest = _longest_context(plan)
    if longest is None or server.max_model_len is None:
        return
    query_id, tokens = longest
    room = server.max_model_len - options.max_tokens - QUESTION_ROOM
    if tokens > room:
        raise PlanError(
            f"the context of query {query_id} is {tokens} tokens and the model takes "
            f"{server.max_model_len} in all; use --context-tokens {max(room, 1)} or less"
        )


def _longest_context(plan: Plan) -> tuple[str, int] | None:
    """Query id and context tokens of the longest context; None where tokens are not known."""
    totals = [(sum(c.tokens or 0 for c in q.chunks), q.query.query_id) for q in plan.queries]
    known = all(c.tokens is not None for q in plan.queries for c in q.chunks)
    tokens, query_id = max(totals)
    return (query_id, tokens) if known else None


def _with_chunks(plan: Plan, flat: Sequence[ChunkPlan]) -> Plan:
    rest = iter(flat)
    queries = (replace(q, chunks=tuple(islice(rest, len(q.chunks)))) for q in plan.queries)
    return replace(plan, queries=tuple(queries))
