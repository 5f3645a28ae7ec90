"""One engine request of a prompt: the tokens handed to it, and how far it got with them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from s2l.serving_adapter.realtime.claim import Kind
from s2l.workloads.context import common_prefix


@dataclass(slots=True)
class PromptRun:
    """``sent`` are the tokens handed out, ``prefilled`` how many of them the engine is done with.

    ``cached`` is what the engine found in its prefix cache, None until its first step;
    ``replaces`` how many tokens past requests were handed of what the prompt is no more;
    ``held_at_end`` what an open session held when its last chunk was handed out.
    """

    request_id: str
    kind: Kind | None = None
    sent: list[int] = field(default_factory=list)
    prefilled: int = 0
    cached: int | None = None
    replaces: int = 0
    held_at_end: int = 0
    generated: int = 0
    chunk_done: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def answering(self) -> bool:
        """Whether the last chunk was handed out: what comes from now on is the answer."""
        return self.kind is Kind.ANSWER

    def hand_out(self, token_ids: Sequence[int], kind: Kind) -> None:
        """The engine gets these next."""
        self.kind = kind
        self.chunk_done.clear()
        if kind is Kind.ANSWER:
            self.held_at_end = self.prefilled
        self.sent.extend(token_ids)

    def held_of(self, tokens: Sequence[int]) -> int:
        """How many of the first of these tokens an open session holds."""
        if self.kind is Kind.PREFIX:
            return 0
        return min(self.prefilled, common_prefix(self.sent, tokens))
