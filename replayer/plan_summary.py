"""A plan in figures: what a run says of its schedule, and what a dry run prints."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from s2l.replayer.options import ReplayOptions
from s2l.replayer.passes import Pass
from s2l.replayer.plan import Plan
from s2l.serving_adapter.base import ServerInfo
from s2l.workloads.plural import counted


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """What a replay would do. Times in seconds, tokens of context (None: not counted).

    ``duration_s`` is how long all passes take if the server answers at once, None for a closed
    loop. What depends on how many requests there will be is None where only the end says that.
    """

    server: str
    model: str
    passes: tuple[str, ...]
    requests_per_pass: int | None
    queries: int
    unfinished_left_out: int
    chunks_per_pass: int | None
    context_tokens_per_pass: int | None
    output_tokens_per_pass: int | None
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
        about = [
            f"server: {self.server}, model {self.model}",
            f"passes: {', '.join(self.passes)}",
        ]
        of = counted(self.queries, "query", "queries")
        if self.requests_per_pass is None:
            return [*about, f"requests in each: as many as end in the time given, of {of}"]
        return [
            *about,
            f"requests in each: {self.requests_per_pass} of {of}, {rate}",
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
        "requests": None if options.open_ended else len(plan.starts_us),
        "unfinished_left_out": plan.unfinished,
        "last_start_s": float(plan.starts_us.max(initial=0)) / 1e6,
    }


def summarize_plan(
    plan: Plan, passes: list[Pass], options: ReplayOptions, server: ServerInfo
) -> PlanSummary:
    """The figures of a plan."""
    n, last_us = len(plan.starts_us), int(plan.starts_us.max(initial=0))
    lasts_us = int(plan.dues_us().max(initial=0))
    closed, known = options.concurrency is not None, not options.open_ended
    uses = np.bincount(np.arange(n) % len(plan.queries), minlength=len(plan.queries))
    return PlanSummary(
        server=f"{server.server} {server.version}".strip(),
        model=server.model,
        passes=tuple(todo.name for todo in passes),
        requests_per_pass=n if known else None,
        queries=len(plan.queries),
        unfinished_left_out=plan.unfinished,
        chunks_per_pass=_sum(uses, [len(q.context.chunks) for q in plan.queries], known),
        context_tokens_per_pass=_sum(uses, [q.context.largest() for q in plan.queries], known),
        output_tokens_per_pass=n * options.max_tokens if known else None,
        rate_qps=options.rate_qps,
        last_start_s=last_us / 1e6,
        duration_s=None if closed else len(passes) * lasts_us / 1e6,
    )


def _sum(uses: npt.NDArray[np.int64], sizes: list[int | None], known: bool) -> int | None:
    """Of all uses of all queries; None where a size or the number of uses is not known."""
    if not known or None in sizes:
        return None
    return int(sum(int(k) * (size or 0) for k, size in zip(uses, sizes, strict=True)))
