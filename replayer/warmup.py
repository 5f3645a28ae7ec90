"""Requests before anything is measured: first requests pay for what later ones find ready."""

from statistics import median
from typing import Final

from s2l.replayer.answer import answer
from s2l.replayer.clock import Clock
from s2l.replayer.options import ReplayOptions
from s2l.replayer.plan import INSTRUCTIONS, Plan
from s2l.serving_adapter.base import (
    ContextChunk,
    ContextDocument,
    Prompt,
    ServingAdapter,
    ServingError,
)

_TEXT: Final = "The server is warming up and nothing of this is measured. "
_QUESTION: Final = "Question: How does a server warm up?"


async def warm_up(
    plan: Plan, adapter: ServingAdapter, options: ReplayOptions, *, salt: str, clock: Clock
) -> list[float]:
    """Send requests one by one, about as long as the plan's, with text that no query has.

    Returns the seconds that each took: the later ones are the latency of the idle server.

    Raises:
        ServingError: the server failed; nothing has been measured yet.
    """
    n_chars = int(median(sum(map(len, q.context.texts.values())) for q in plan.queries))
    text = _TEXT * (1 + n_chars // len(_TEXT))
    chunks = (ContextChunk((ContextDocument("warm-up", text),)),)
    request = adapter.prepare(Prompt(INSTRUCTIONS, chunks, _QUESTION, options.max_tokens))
    latencies_s = []
    for number in range(options.warmup):
        start_ns = clock.now_ns()
        try:
            await answer(request, chunks=1, salt=f"{salt}/{number}", timeout_s=options.timeout_s)
        except ServingError as error:
            raise ServingError(error.error_type, f"warming up failed: {error}") from None
        latencies_s.append((clock.now_ns() - start_ns) / 1e9)
    return latencies_s
