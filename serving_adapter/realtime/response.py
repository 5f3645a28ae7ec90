"""One response under way: what the model says to one prompt, told event by event."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from s2l.serving_adapter.realtime.conversation import ConversationItem
from s2l.serving_adapter.realtime.engine import Step, TextDecoder
from s2l.serving_adapter.realtime.server_events import (
    Event,
    Outcome,
    ResponseEvents,
    TokenCount,
)
from s2l.serving_adapter.realtime.streamed_prompt import StreamedPrompt

log = logging.getLogger(__name__)

_CANCELLED: Final = Outcome("cancelled", "client_cancelled")

Put = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to generate: at most ``max_tokens``, greedily at temperature 0."""

    max_tokens: int
    temperature: float


class Response:
    """Generates one answer. Its item has the text so far when it is over, however it ended."""

    def __init__(
        self,
        prompt: StreamedPrompt,
        sampling: Sampling,
        item: ConversationItem,
        events: ResponseEvents,
        put: Put,
        *,
        reports: bool,
        on_first_step: Callable[[], None] = lambda: None,
    ) -> None:
        self.prompt = prompt
        self.item = item
        self._sampling = sampling
        self.events = events
        self._put = put
        self._reports = reports
        self._on_first_step = on_first_step
        self._text: list[str] = []
        self._output_tokens = 0
        self._untold_tokens = 0
        self._generation: asyncio.Task[Outcome] | None = None
        self._cancelled = False

    def cancel(self) -> bool:
        """End it where it is; whether there was still something to end."""
        if self._cancelled or (self._generation is not None and self._generation.done()):
            return False
        self._cancelled = True
        if self._generation is not None:
            self._generation.cancel()
        return True

    async def run(self, decoder: TextDecoder) -> None:
        """Generate, and tell all but ``response.created``, which is said when it is accepted."""
        self._put_all(self.events.opening())
        outcome = await self._outcome(decoder)
        self.item.texts = ("".join(self._text),)
        self.item.status = outcome.item_status
        self._put_all(self.events.closing(outcome, self._count()))

    async def _outcome(self, decoder: TextDecoder) -> Outcome:
        """What became of the generation. Its own task, so that only it is cancelled."""
        if self._cancelled:
            outcome = _CANCELLED
        else:
            self._generation = asyncio.create_task(self._generate(decoder))
            try:
                await asyncio.wait([self._generation])
            finally:
                self._generation.cancel()
            outcome = _CANCELLED if self._generation.cancelled() else self._generation.result()
        await self.prompt.aclose()
        return outcome

    async def _generate(self, decoder: TextDecoder) -> Outcome:
        outcome = Outcome("completed")
        try:
            steps = self.prompt.answer(self._sampling.max_tokens, self._sampling.temperature)
            async with aclosing(steps):  # type: ignore[type-var]
                async for step in steps:
                    self._take(step, decoder)
                    if step.finish_reason == "length":
                        outcome = Outcome("incomplete", "max_output_tokens")
        except Exception as error:  # the engine's own failures are the client's to know
            log.exception("response failed")
            return Outcome("failed", "engine_error", str(error) or repr(error))
        return outcome

    def _take(self, step: Step, decoder: TextDecoder) -> None:
        if not self._output_tokens:
            self._on_first_step()
        self._output_tokens += len(step.token_ids)
        self._untold_tokens += len(step.token_ids)
        if text := decoder.push(step.token_ids):
            self._text.append(text)
            delta = self.events.delta(text)
            if self._reports:
                delta["s2l"] = {"tokens": self._untold_tokens}
            self._untold_tokens = 0
            self._put(delta)

    def _count(self) -> TokenCount:
        return TokenCount(
            self.prompt.tokens,
            self.prompt.cached_tokens,
            self._output_tokens,
            self.prompt.invalidated_tokens if self._reports else None,
            self.prompt.found_tokens,
            self.prompt.discarded_tokens,
        )

    def _put_all(self, events: Iterable[Event]) -> None:
        for event in events:
            self._put(event)
