"""A prompt that is prefilled while it changes, and answered once it is complete."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass

from s2l.serving_adapter.realtime.admission import Admission
from s2l.serving_adapter.realtime.claim import Ask, Claim, Kind, Leave
from s2l.serving_adapter.realtime.engine import Chunk, Engine, EngineAborted, Step
from s2l.serving_adapter.realtime.prompt_account import PromptAccount
from s2l.serving_adapter.realtime.prompt_run import PromptRun
from s2l.workloads.context import common_prefix

log = logging.getLogger(__name__)

SETTLE_S = 0.005
"""Changes that follow each other closer than this are prefilled as one. What is sent in one burst,
as by a client that waited for all of it, so costs one engine step and not one per item."""

EARLY_PRIORITY = 1
"""Of requests that only warm the prefix cache: the engine takes everything else before them."""


@dataclass(frozen=True, slots=True)
class _Completion:
    max_tokens: int
    temperature: float


class StreamedPrompt:
    """Feeds an engine with leave of ``admission``, and anew when what it was fed is out of date.

    A session is fed chunk by chunk: one is in flight at a time and what comes meanwhile is merged
    into the next, since a chunk sent while the one before is still being prefilled is not safe with
    the engines there are. The last token known is held back until the prompt is complete, so that
    the last chunk is never empty. Where there is no room for a session, ordinary requests for one
    token warm the engine's prefix cache instead, and another ordinary request asks for the answer.
    When context is replaced or the session is evicted, the request is aborted; the next one finds
    in the prefix cache, in whole blocks, what it has in common with those before it.
    ``on_prefilled`` is called with the number of prompt tokens that the engine has prefilled.
    """

    def __init__(
        self,
        engine: Engine,
        admission: Admission,
        *,
        request_id: str,
        on_prefilled: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._engine = engine
        self._admission = admission
        self._request_id = request_id
        self.cache_salt = ""
        self._on_prefilled = on_prefilled
        self._tokens: list[int] = []
        self._run = PromptRun("")
        self._runs = 0
        self._account = PromptAccount()
        self._growing = 0
        self._version = 0
        self._last_change_s = 0.0
        self._changed = asyncio.Event()
        self._completion: _Completion | None = None
        self._steps: asyncio.Queue[Step | None] = asyncio.Queue()
        self._claim: Claim | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def tokens(self) -> int:
        """Length of the prompt as it is now."""
        return len(self._tokens)

    @property
    def prefilled_tokens(self) -> int:
        """Tokens of the prompt as it is now that an open session holds."""
        return self._run.held_of(self._tokens)

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens that were there when the answer was asked for; where a chunk was in the
        engine just then, those of it are not among them."""
        return self._account.cached(self._run)

    @property
    def discarded_tokens(self) -> int:
        """Tokens generated after intermediate chunks, which are no part of an answer."""
        return self._account.discarded

    @property
    def found_tokens(self) -> int:
        """Prompt tokens that were in the prefix cache before this prompt had put any there."""
        return self._account.found or 0

    @property
    def invalidated_tokens(self) -> int:
        """Tokens handed to the engine that the next request could not reuse, since they changed."""
        return self._account.invalidated

    @contextmanager
    def changing(self) -> Iterator[None]:
        """While it lasts more changes are about to come, and a chunk waits for them."""
        self._growing += 1
        try:
            yield
        finally:
            self._growing -= 1
            self._note_change()

    def extend(self, token_ids: Sequence[int]) -> None:
        """Add tokens at the end; see ``replace``."""
        self.replace([*self._tokens, *token_ids])

    def replace(self, token_ids: Sequence[int]) -> None:
        """The prompt is this from now on; prefill starts as soon as the engine can take it.

        Raises:
            Overloaded: this is the first of it, and too many prompts wait for the engine already.
        """
        if self._claim is None:
            self._claim = self._admission.claim(self._changed.set)
        self._tokens = list(token_ids)
        self._note_change()
        if self._task is None:
            self._task = asyncio.create_task(self._drive(self._claim))

    async def answer(self, max_tokens: int, temperature: float) -> AsyncIterator[Step]:
        """The prompt is complete: yield what the model says. Raises what the engine raises."""
        if self._task is None or not self._tokens:
            raise ValueError("an empty prompt cannot be answered")
        self._account.held_when_asked = self.prefilled_tokens
        self._completion = _Completion(max_tokens, temperature)
        self._version += 1
        self._changed.set()
        while (step := await self._steps.get()) is not None:
            yield step
        await self._task

    async def aclose(self) -> None:
        """Abort what runs and free its KV blocks."""
        if (task := self._task) is None:
            return
        task.cancel()
        await asyncio.wait([task])
        failed = None if task.cancelled() else task.exception()
        if failed and self._completion is None:  # else who waited for the answer was told
            log.error("early prefill failed", exc_info=failed)

    def _note_change(self) -> None:
        self._last_change_s = asyncio.get_running_loop().time()
        self._version += 1
        self._changed.set()

    async def _drive(self, claim: Claim) -> None:
        """Run requests until one of them gave the answer."""
        try:
            while not await self._answered_by_run(claim):
                pass
        finally:
            self._admission.release(claim)
            self._steps.put_nowait(None)

    async def _answered_by_run(self, claim: Claim) -> bool:
        """Run one request to its end, or abort it when it is out of date or evicted."""
        self._runs += 1
        run = self._run = PromptRun(f"{self._request_id}-{self._runs}")
        running = asyncio.create_task(self._feed(run, claim))
        overtaken = asyncio.create_task(self._until_overtaken(run, claim))
        try:
            await asyncio.wait((running, overtaken), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
            return run.answering and running.done()
        finally:
            for task in (running, overtaken):
                task.cancel()
            await asyncio.gather(running, overtaken, return_exceptions=True)
            self._account.over(run)
            self._admission.closed(claim, len(run.sent))

    async def _feed(self, run: PromptRun, claim: Claim) -> None:
        steps = self._engine.run(run.request_id, self._chunks(run, claim), self.cache_salt)
        try:
            async with aclosing(steps) as steps:  # type: ignore[type-var]
                async for step in steps:
                    self._take(run, claim, step)
        except EngineAborted:
            if run.answering:
                raise  # what is not asked for yet can be prefilled again

    def _take(self, run: PromptRun, claim: Claim, step: Step) -> None:
        self._account.took(run, step)
        if run.answering:
            self._admission.answered(claim, len(run.sent) + run.generated)
            self._steps.put_nowait(step)
        elif step.finish_reason is not None:
            run.prefilled = len(run.sent)
            self._admission.prefilled(claim, step.cached_tokens)
            self._on_prefilled(common_prefix(run.sent, self._tokens))
            run.chunk_done.set()

    async def _chunks(self, run: PromptRun, claim: Claim) -> AsyncIterator[Chunk]:
        while True:
            leave = await self._leave(run, claim)
            ids = tuple(self._tokens[len(run.sent) : leave.end])
            self._account.handed_out(run, len(ids), self._tokens)
            run.hand_out(ids, leave.kind)
            if leave.kind is Kind.SESSION:
                yield Chunk(ids, 1, 0.0, last=False)
                await run.chunk_done.wait()
            else:
                yield self._last_chunk(ids, leave.kind)
                return

    def _last_chunk(self, ids: tuple[int, ...], kind: Kind) -> Chunk:
        if kind is Kind.PREFIX:
            return Chunk(ids, 1, 0.0, last=True, priority=EARLY_PRIORITY)
        assert self._completion is not None
        return Chunk(ids, self._completion.max_tokens, self._completion.temperature, last=True)

    async def _leave(self, run: PromptRun, claim: Claim) -> Leave:
        """Wait until there is something to hand out, and leave to do so."""
        while True:
            await self._settled(lambda: self._has_more(run, claim))
            version = self._version
            self._admission.ask(claim, self._ask(run))
            while claim.leave is None and version == self._version:
                await self._change_within(None)
            if claim.leave is not None and version == self._version:
                return claim.leave
            self._admission.withdraw(claim)

    def _ask(self, run: PromptRun) -> Ask:
        start, kept = len(run.sent), self._account.kept(self._tokens)
        if self._completion:
            return Ask(start, len(self._tokens), kept, self._completion.max_tokens)
        return Ask(start, len(self._tokens) - 1, kept)

    def _has_more(self, run: PromptRun, claim: Claim) -> bool:
        """Whether there is something to hand out; the last token is held back until the end."""
        if self._completion:
            return len(self._tokens) > len(run.sent) and not self._has_diverged(run)
        end = len(self._tokens) - 1
        if run.sent:
            return end > len(run.sent) and not self._has_diverged(run)
        return end > 0 and (claim.cold or end > self._account.kept(self._tokens))

    async def _until_overtaken(self, run: PromptRun, claim: Claim) -> None:
        """Wait until the request is evicted, out of date, or not worth waiting for any more."""

        def at_once() -> bool:
            # An answer that began is never begun again. A complete prompt need not wait for its own
            # warming: what is done of it is in the cache, and the rest is better done at once.
            evicted = claim.evicted and not run.generated
            return evicted or (run.kind is Kind.PREFIX and self._completion is not None)

        await self._settled(lambda: at_once() or self._has_diverged(run), at_once)

    def _has_diverged(self, run: PromptRun) -> bool:
        """Whether what was fed does not begin the prompt, or leaves nothing for the last chunk."""
        if run.answering or not run.sent:
            return False
        return len(run.sent) >= len(self._tokens) or self._tokens[: len(run.sent)] != run.sent

    async def _settled(
        self, condition: Callable[[], bool], at_once: Callable[[], bool] = lambda: False
    ) -> None:
        """Wait until the condition holds and no more changes are coming, or the second holds."""
        loop = asyncio.get_running_loop()
        while not at_once():
            wait_s: float | None = None
            if condition() and not self._growing:
                wait_s = self._last_change_s + SETTLE_S - loop.time()
                if wait_s <= 0 or self._completion:
                    return
            await self._change_within(wait_s)

    async def _change_within(self, wait_s: float | None) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(wait_s):
                await self._changed.wait()
        except TimeoutError:
            return
