"""A conversation on its way into the engine, and word of which of its items are there."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager

from s2l.serving_adapter.realtime.conversation import Conversation
from s2l.serving_adapter.realtime.metrics import ITEM_TO_PREFILLED, MERGED
from s2l.serving_adapter.realtime.streamed_prompt import StreamedPrompt

OnPrefilled = Callable[[int], None]
OnHeld = Callable[[list[str], int], None]


class ConversationPrompt:
    """The prompt of one turn, prefilled while the conversation changes.

    ``on_held`` is called with the ids of items that the engine holds since, and the number of
    tokens that it holds; with no ids when these are not the ends of items.
    """

    def __init__(
        self, new_prompt: Callable[[OnPrefilled], StreamedPrompt], on_held: OnHeld
    ) -> None:
        self.prompt = new_prompt(self._on_prefilled)
        self._on_held = on_held
        self._conversation = Conversation()
        self.begun = False
        """Whether there is something to prefill: until then it holds no KV room."""

    def changing(self) -> AbstractContextManager[None]:
        """While it lasts more changes are about to come, and prefill waits for them."""
        return self.prompt.changing()

    def follow(self, conversation: Conversation, salt: str, *, to_the_end: bool = False) -> None:
        """The conversation is this from now on, and is not changed in place; ``to_the_end`` is
        for one that is to be answered. The salt is settled by the first one.

        Raises:
            Overloaded: it is the first, and too many sessions wait for KV cache already.
        """
        if not self.begun:
            self.prompt.cache_salt = salt
        self.prompt.replace(conversation.prompt if to_the_end else conversation.tokens)
        self._conversation = conversation
        self.begun = True

    def all_held(self) -> None:
        """The engine answers, so it holds all."""
        self._on_prefilled(self.prompt.tokens)

    async def aclose(self) -> None:
        """Abort what runs and free its KV blocks."""
        await self.prompt.aclose()

    def _on_prefilled(self, tokens: int) -> None:
        items = self._conversation.newly_held(tokens)
        now_s = asyncio.get_running_loop().time()
        for item in items:
            if not item.was_held and item.arrived_s:
                ITEM_TO_PREFILLED.observe(now_s - item.arrived_s)
            item.was_held = True
        if len(items) > 1:
            MERGED.inc(len(items))
        self._on_held([item.item_id for item in items], tokens)
