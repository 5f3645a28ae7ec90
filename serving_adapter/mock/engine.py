"""An engine that computes nothing and takes exactly as long as it is told to."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import chain
from typing import Final

from s2l.serving_adapter.mock.latencies import NS, Latencies
from s2l.serving_adapter.mock.prefix_memory import PrefixMemory
from s2l.serving_adapter.mock.vocabulary import Vocabulary, render_turns
from s2l.serving_adapter.precise_timer import PreciseTimer
from s2l.serving_adapter.realtime.engine import Chunk, EngineInfo, Message, Step, TextDecoder

__all__ = ["Latencies", "MockEngine", "Vocabulary"]

_BLOCK: Final = 16
_RUNS_KEPT: Final = 4096


class MockEngine:
    """Answers with words that follow from the whole prompt, so that equal prompts can be told.

    ``runs`` lists, by request, the token ids of each chunk: what a real engine would hold. Of
    those that are over, only the newest are kept. With ``prefix_cache``, what requests with the
    same salt have in common at their beginning is not computed again.
    """

    def __init__(
        self,
        latencies: Latencies | None = None,
        *,
        max_model_len: int = 32_768,
        kv_capacity: int = 1_000_000,
        max_sessions: int = 4096,
        prefix_cache: bool = False,
    ) -> None:
        self.latencies = latencies or Latencies()
        self.vocabulary = Vocabulary()
        self.runs: dict[str, list[tuple[int, ...]]] = {}
        self.open_runs = 0
        self.held_tokens = 0
        self.prompt_tokens = 0
        self.output_tokens = 0
        self.prefix_cache = prefix_cache
        self.memory = PrefixMemory(kv_capacity if prefix_cache else 0, _BLOCK)
        self._answer_ids: list[tuple[int, ...]] = [()]  # of the words after the first
        self._timer: PreciseTimer | None = None
        self._timer_loop: asyncio.AbstractEventLoop | None = None
        self.info = EngineInfo(
            engine="s2l-mock",
            version="1",
            model="mock",
            max_model_len=max_model_len,
            kv_capacity=kv_capacity,
            block_size=_BLOCK,
            max_sessions=max_sessions,
            settings={
                field: getattr(self.latencies, field) for field in Latencies.__dataclass_fields__
            },
        )

    @property
    def timer(self) -> PreciseTimer:
        """The timer of the running loop; ``close`` frees it."""
        loop = asyncio.get_running_loop()
        if self._timer is None or self._timer_loop is not loop:
            self.close()
            self._timer, self._timer_loop = PreciseTimer(loop), loop
        return self._timer

    def close(self) -> None:
        """Free the timer."""
        if self._timer is not None:
            self._timer.close()
            self._timer = None

    async def tokenize(self, text: str, *, start: bool = False) -> list[int]:
        """One token a word."""
        return self.vocabulary.encode(text)

    def render(self, messages: Sequence[Message]) -> str:
        """A template with both ends, as chat models have; the same as over HTTP."""
        return render_turns((message.role, message.content) for message in messages)

    def decoder(self) -> TextDecoder:
        """Decodes ids of the mock's own words."""
        return _Decoder(self.vocabulary)

    async def run(
        self, request_id: str, chunks: AsyncIterator[Chunk], cache_salt: str
    ) -> AsyncIterator[Step]:
        """Sleep as long as the chunks would take, then say the answer."""
        held = self._begin(request_id)
        cached = 0
        try:
            async for chunk in chunks:
                start_ns, n = time.monotonic_ns(), len(chunk.token_ids)
                if not held:
                    cached = self.memory.find(chunk.token_ids, cache_salt)
                    n -= cached
                held.append(chunk.token_ids)
                self.held_tokens += len(chunk.token_ids)
                self.prompt_tokens += len(chunk.token_ids)
                if not chunk.last:
                    await self._sleep_until(start_ns + round(self.latencies.chunk_s(n) * NS))
                    self._remember(held, cache_salt)
                    yield Step(tuple(self.vocabulary.encode(" dropped")), "length", cached)
                    continue
                first_ns = start_ns + self.latencies.ttft_ns(n)
                for i, ids in enumerate(self._answer(held, chunk.max_tokens)):
                    await self._sleep_until(first_ns + round(i * self.latencies.tpot_s * NS))
                    if i == 0:
                        self._remember(held, cache_salt)
                    self.output_tokens += 1
                    yield Step(ids, "length" if i == chunk.max_tokens - 1 else None, cached)
        finally:
            self.held_tokens -= sum(map(len, held))
            self.open_runs -= 1

    def _remember(self, held: list[tuple[int, ...]], cache_salt: str) -> None:
        if self.prefix_cache:
            self.memory.add(tuple(chain.from_iterable(held)), cache_salt)

    def _begin(self, request_id: str) -> list[tuple[int, ...]]:
        if len(self.runs) >= _RUNS_KEPT + self.open_runs:
            del self.runs[next(iter(self.runs))]
        self.open_runs += 1
        held = self.runs[request_id] = []
        return held

    def _answer(self, held: list[tuple[int, ...]], max_tokens: int) -> Iterator[tuple[int, ...]]:
        digest = hashlib.sha256()
        for ids in held:
            digest.update(self.vocabulary.decode(ids).encode())
        yield (self.vocabulary.digest_id(digest.hexdigest()[:12]),)
        for i in range(len(self._answer_ids), max_tokens):
            self._answer_ids.append(tuple(self.vocabulary.encode(f" word{i}")))
        yield from self._answer_ids[1:max_tokens]

    async def _sleep_until(self, deadline_ns: int) -> None:
        await self.timer.sleep_until_ns(deadline_ns)


class _Decoder:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def push(self, token_ids: Sequence[int]) -> str:
        return self._vocabulary.decode(token_ids)
