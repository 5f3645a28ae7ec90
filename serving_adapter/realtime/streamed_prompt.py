"""A prompt that is prefilled while it changes, and answered once it is complete."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field

from s2l.serving_adapter.realtime.admission import Admission, Reservation
from s2l.serving_adapter.realtime.engine import Chunk, Engine, Step

SETTLE_S = 0.005
"""Changes that follow each other closer than this are prefilled as one. What is sent in one burst,
as by a client that waited for all of it, so costs one engine step and not one per item."""


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


@dataclass(frozen=True, slots=True)
class _Completion:
    max_tokens: int
    temperature: float


@dataclass(slots=True)
class _Run:
    """One engine request: the tokens handed to it, and how many of them it holds."""

    sent: list[int] = field(default_factory=list)
    prefilled: int = 0
    cached: int | None = None
    """Tokens that the engine found in its prefix cache; None until its first step."""
    complete: bool = False
    """Whether the last chunk was handed out: what comes from now on is the answer."""


class StreamedPrompt:
    """Feeds an engine chunk by chunk, and anew when what it was fed is no longer the prompt.

    One chunk is in flight at a time and what comes meanwhile is merged into the next: a chunk sent
    while the one before is still being prefilled is not safe with the engines there are. The last
    token known is held back until the prompt is complete, so that the last chunk is never empty.
    When context is replaced, the request is aborted and a new one takes its place: of what was
    prefilled it finds the common prefix in the engine's prefix cache, in whole blocks.
    ``on_prefilled`` is called with the number of prompt tokens that the engine holds.
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
        self._run = _Run()
        self._runs = 0
        self._handed_out = 0
        self._thrown_away = 0
        self._growing = 0
        self._last_change_s = 0.0
        self._changed = asyncio.Event()
        self._chunk_done = asyncio.Event()
        self._completion: _Completion | None = None
        self._steps: asyncio.Queue[Step | None] = asyncio.Queue()
        self._reservation: Reservation | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def tokens(self) -> int:
        """Length of the prompt as it is now."""
        return len(self._tokens)

    @property
    def prefilled_tokens(self) -> int:
        """Tokens of the prompt as it is now that the engine's request holds."""
        return min(self._run.prefilled, common_prefix(self._run.sent, self._tokens))

    @property
    def prefix_cached_tokens(self) -> int:
        """Prompt tokens that the last request found in the prefix cache."""
        return self._run.cached or 0

    @property
    def invalidated_tokens(self) -> int:
        """Tokens handed to the engine and not reused by the request that came after."""
        return self._thrown_away

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
            Overloaded: this is the first of it, and too many sessions wait for KV cache already.
        """
        if self._reservation is None:
            self._reservation = self._admission.request(self._engine.info.max_model_len)
        self._tokens = list(token_ids)
        self._note_change()
        if self._task is None:
            self._task = asyncio.create_task(self._drive(self._reservation))

    async def answer(self, max_tokens: int, temperature: float) -> AsyncIterator[Step]:
        """The prompt is complete: yield what the model says. Raises what the engine raises."""
        if self._reservation is None or self._task is None or not self._tokens:
            raise ValueError("an empty prompt cannot be answered")
        self._completion = _Completion(max_tokens, temperature)
        self._admission.shrink(self._reservation, self.tokens + max_tokens)
        self._changed.set()
        while (step := await self._steps.get()) is not None:
            yield step
        await self._task

    async def aclose(self) -> None:
        """Abort what runs and free its KV blocks."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _note_change(self) -> None:
        self._last_change_s = asyncio.get_running_loop().time()
        self._changed.set()

    async def _drive(self, reservation: Reservation) -> None:
        """Run requests until one of them was not overtaken by a change of its prompt."""
        try:
            await reservation.granted.wait()
            while await self._overtaken():
                self._handed_out = len(self._run.sent)
        finally:
            self._admission.release(reservation)
            self._steps.put_nowait(None)

    async def _overtaken(self) -> bool:
        """Run one request to its end, or abort it when what it was fed is no longer the prompt."""
        self._run = _Run()
        self._runs += 1
        self._chunk_done.set()
        running = asyncio.create_task(self._feed(self._run))
        diverged = asyncio.create_task(self._until_diverged(self._run))
        try:
            await asyncio.wait((running, diverged), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
            return not running.done()
        finally:
            for task in (running, diverged):
                task.cancel()
            await asyncio.gather(running, diverged, return_exceptions=True)

    async def _feed(self, run: _Run) -> None:
        request_id = f"{self._request_id}-{self._runs}"
        steps = self._engine.run(request_id, self._chunks(run), self.cache_salt)
        async with aclosing(steps) as steps:  # type: ignore[type-var]
            async for step in steps:
                self._take(run, step)

    def _take(self, run: _Run, step: Step) -> None:
        if run.cached is None:
            run.cached = step.cached_tokens
            self._thrown_away += max(0, self._handed_out - step.cached_tokens)
        if run.complete:
            self._steps.put_nowait(step)
        elif step.finish_reason is not None:  # the token of an intermediate chunk is no answer
            run.prefilled = len(run.sent)
            self._on_prefilled(self.prefilled_tokens)
            self._chunk_done.set()

    async def _chunks(self, run: _Run) -> AsyncIterator[Chunk]:
        while True:
            await self._chunk_done.wait()
            await self._settled(run, self._has_more)
            completion = self._completion
            end = len(self._tokens) - (0 if completion else 1)
            ids = tuple(self._tokens[len(run.sent) : end])
            run.sent.extend(ids)
            self._chunk_done.clear()
            if completion:
                run.complete = True
                yield Chunk(ids, completion.max_tokens, completion.temperature, last=True)
                return
            yield Chunk(ids, 1, 0.0, last=False)

    async def _until_diverged(self, run: _Run) -> None:
        await self._settled(run, self._has_diverged)

    def _has_diverged(self, run: _Run) -> bool:
        """Whether what was fed does not begin the prompt, or leaves nothing for the last chunk."""
        if run.complete or not run.sent:
            return False
        return len(run.sent) >= len(self._tokens) or self._tokens[: len(run.sent)] != run.sent

    def _has_more(self, run: _Run) -> bool:
        """Whether there is something to feed: at the end the last token, held back till then."""
        held_back = 0 if self._completion else 1
        return len(self._tokens) - held_back > len(run.sent) and not self._has_diverged(run)

    async def _settled(self, run: _Run, condition: Callable[[_Run], bool]) -> None:
        """Wait until the condition holds and no more changes are coming."""
        loop = asyncio.get_running_loop()
        while True:
            wait_s: float | None = None
            if condition(run) and not self._growing:
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
