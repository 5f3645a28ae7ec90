"""Requests before anything is measured: first requests pay for what later ones find ready."""

import asyncio
from statistics import median
from typing import Final

from s2l.replayer.plan import INSTRUCTIONS, Plan
from s2l.serving_adapter.base import Prompt, ServingAdapter

_TEXT: Final = "The server is warming up and nothing of this is measured. "


async def warm_up(
    plan: Plan, adapter: ServingAdapter, *, requests: int, salt: str, timeout_s: float
) -> None:
    """Send requests one by one, about as long as the plan's, with text that no query has.

    Raises:
        ServingError: the server failed; nothing has been measured yet.
    """
    n_chars = int(median(sum(len(c.text) for c in q.chunks) for q in plan.queries))
    text = _TEXT * (1 + n_chars // len(_TEXT))
    for number in range(requests):
        prompt = Prompt(INSTRUCTIONS, (text,), "Is it warm?", 2, f"{salt}/{number}")
        async with asyncio.timeout(timeout_s), adapter.prepare(prompt).open() as session:
            await session.send_chunk(0)
            await session.ask()
            async for _ in session.events():
                pass
