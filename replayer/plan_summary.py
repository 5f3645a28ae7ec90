"""A plan in figures: what a run says of its schedule, and what a dry run prints."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from s2l.replayer.options import ReplayOptions
from s2l.replayer.passes import Pass
from s2l.replayer.plan import Plan
from s2l.serving_adapter.base import ServerInfo


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """What a replay would do. Times in seconds, tokens of context (None: not counted).

    ``duration_s`` is how long all passes take if the server answers at once, None for a closed
    loop.
    """

    server: str
    model: str
    passes: tuple[str, ...]
    requests_per_pass: int
    queries: int
    unfinished_left_out: int
    chunks_per_pass: int
    context_tokens_per_pass: int | None
    output_tokens_per_pass: int
    rate_qps: float | None
    last_start_s: float
    duration_s: float | None

    def lines(self) -> list[str]:
        """For a person to read."""
        tokens = "unknown" if self.context_tokens_per_pass is None else self.context_tokens_per_pass
        rate = "as the arrivals say" if self.rate_qps is None else f"{self.rate_qps:g} a second"
        lasts = "as long as the server takes"
        if self.duration_s is not None:
            lasts = f"{self.duration_s:.1f} s if the server answers at once"
        return [
            f"server: {self.server}, model {self.model}",
            f"passes: {', '.join(self.passes)}",
            f"requests in each: {self.requests_per_pass} of {self.queries} queries, {rate}",
            f"context in each: {self.chunks_per_pass} chunks, {tokens} tokens",
            f"output in each: at most {self.output_tokens_per_pass} tokens",
            f"last start: {self.last_start_s:.1f} s after the first; all passes: {lasts}",
        ]


def schedule_summary(plan: Plan, options: ReplayOptions) -> dict[str, Any]:
    """For ``run.json``."""
    return {
        "arrivals": "closed_loop" if options.concurrency is not None else options.arrivals,
        "rate_qps": options.rate_qps,
        "queries": len(plan.queries),
        "requests": len(plan.starts_us),
        "unfinished_left_out": plan.unfinished,
        "last_start_s": float(plan.starts_us.max(initial=0)) / 1e6,
    }


def summarize_plan(
    plan: Plan, passes: list[Pass], options: ReplayOptions, server: ServerInfo
) -> PlanSummary:
    """The figures of a plan."""
    n, last_us = len(plan.starts_us), int(plan.starts_us.max(initial=0))
    uses = np.bincount(np.arange(n) % len(plan.queries), minlength=len(plan.queries))
    sizes = [query.context.largest() for query in plan.queries]
    tokens = None
    if None not in sizes:
        tokens = int(sum(int(k) * (size or 0) for k, size in zip(uses, sizes, strict=True)))
    lasts_us = int(plan.dues_us().max(initial=0))
    closed = options.concurrency is not None
    return PlanSummary(
        server=f"{server.server} {server.version}".strip(),
        model=server.model,
        passes=tuple(todo.name for todo in passes),
        requests_per_pass=n,
        queries=len(plan.queries),
        unfinished_left_out=plan.unfinished,
        chunks_per_pass=int(
            sum(int(k) * len(q.context.chunks) for k, q in zip(uses, plan.queries, strict=True))
        ),
        context_tokens_per_pass=tokens,
        output_tokens_per_pass=n * options.max_tokens,
        rate_qps=options.rate_qps,
        last_start_s=last_us / 1e6,
        duration_s=None if closed else len(passes) * lasts_us / 1e6,
    )
