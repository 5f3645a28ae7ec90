"""A prompt that is prefilled while it grows, and answered once it is complete."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass

from s2l.serving_adapter.realtime.admission import Admission, Reservation
from s2l.serving_adapter.realtime.engine import Chunk, Engine, Step

SETTLE_S = 0.005
"""Items that follow each other closer than this are prefilled as one chunk. What is sent in one
burst, as by a client that waited for all of it, so costs one engine step and not one per item."""


@dataclass(frozen=True, slots=True)
class _Completion:
    max_tokens: int
    temperature: float


class StreamedPrompt:
    """Feeds one engine request chunk by chunk.

    One chunk is in flight at a time and what comes meanwhile is merged into the next: a chunk sent
    while the one before is still being prefilled is not safe with the engines there are. The last
    token known is held back until the prompt is complete, so that the last chunk is never empty.
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
        self._pending: list[int] = []
        self._sent = 0
        self._prefilled = 0
        self._prefix_cached = 0
        self._growing = 0
        self._last_growth_s = 0.0
        self._changed = asyncio.Event()
        self._chunk_done = asyncio.Event()
        self._chunk_done.set()
        self._completion: _Completion | None = None
        self._steps: asyncio.Queue[Step | None] = asyncio.Queue()
        self._reservation: Reservation | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def tokens(self) -> int:
        """Length of the prompt so far."""
        return self._sent + len(self._pending)

    @property
    def prefilled_tokens(self) -> int:
        """Prompt tokens that the engine holds by now."""
        return self._prefilled

    @property
    def prefix_cached_tokens(self) -> int:
        """Prompt tokens that the engine found in its prefix cache when the prompt began."""
        return self._prefix_cached

    @contextmanager
    def growing(self) -> Iterator[None]:
        """While it lasts more tokens are about to come, and a chunk waits for them."""
        self._growing += 1
        try:
            yield
        finally:
            self._growing -= 1
            self._grew()

    def extend(self, token_ids: Sequence[int]) -> None:
        """Add tokens at the end; prefill of them starts as soon as the engine can take them.

        Raises:
            Overloaded: this is the first of it, and too many sessions wait for KV cache already.
        """
        if self._reservation is None:
            self._reservation = self._admission.request(self._engine.info.max_model_len)
        self._pending.extend(token_ids)
        self._grew()
        if self._task is None:
            self._task = asyncio.create_task(self._drive(self._reservation))

    async def answer(self, max_tokens: int, temperature: float) -> AsyncIterator[Step]:
        """The prompt is complete: yield what the model says. Raises what the engine raises."""
        if self._reservation is None or self._task is None:
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

    def _grew(self) -> None:
        self._last_growth_s = asyncio.get_running_loop().time()
        self._changed.set()

    async def _drive(self, reservation: Reservation) -> None:
        try:
            await reservation.granted.wait()
            steps = self._engine.run(self._request_id, self._chunks(), self.cache_salt)
            async with aclosing(steps) as steps:  # type: ignore[type-var]
                async for step in steps:
                    self._take(step)
        finally:
            self._admission.release(reservation)
            self._steps.put_nowait(None)

    def _take(self, step: Step) -> None:
        if self._prefilled == 0:
            self._prefix_cached = max(self._prefix_cached, step.cached_tokens)
        if self._answering:
            self._steps.put_nowait(step)
        elif step.finish_reason is not None:  # the token of an intermediate chunk is no answer
            self._prefilled = self._sent
            self._on_prefilled(self._prefilled)
            self._chunk_done.set()

    @property
    def _answering(self) -> bool:
        return self._completion is not None and not self._pending

    async def _chunks(self) -> AsyncIterator[Chunk]:
        while True:
            await self._chunk_done.wait()
            await self._settle()
            completion = self._completion
            keep = 0 if completion else 1
            ids = tuple(self._pending[: len(self._pending) - keep])
            del self._pending[: len(ids)]
            self._sent += len(ids)
            self._chunk_done.clear()
            if completion:
                yield Chunk(ids, completion.max_tokens, completion.temperature, last=True)
                return
            yield Chunk(ids, 1, 0.0, last=False)

    async def _settle(self) -> None:
        """Wait until the prompt is complete, or has tokens to send and no more are coming."""
        loop = asyncio.get_running_loop()
        while not self._completion:
            wait_s: float | None = None
            if len(self._pending) > 1 and not self._growing:
                wait_s = self._last_growth_s + SETTLE_S - loop.time()
                if wait_s <= 0:
                    return
            self._changed.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
            except TimeoutError:
                continue
