"""Many prompts over a KV cache too small for all: everyone is answered, with the right tokens."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from s2l.serving_adapter.embedded.model import Model
from s2l.serving_adapter.embedded.server import EngineOptions
from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.realtime.admission import Admission
from s2l.serving_adapter.realtime.engine import Chunk, Step
from s2l.serving_adapter.realtime.prefill_mode import PREFILL_MODES
from s2l.serving_adapter.realtime.streamed_prompt import SETTLE_S, StreamedPrompt

BLOCK = 16


class BlockEngine(MockEngine):
    """Holds KV blocks as vLLM does: a request keeps its own while it waits for its next chunk, and
    a chunk without room waits for others to end. One chunk is computed at a time."""

    def __init__(self, blocks: int) -> None:
        super().__init__(max_model_len=blocks * BLOCK, kv_capacity=blocks * BLOCK)
        self.free = self.blocks = blocks
        self.waits = 0
        self.held: dict[str, list[int]] = {}
        self._freed = asyncio.Condition()
        self._compute = asyncio.Lock()

    async def run(
        self, request_id: str, chunks: AsyncIterator[Chunk], cache_salt: str
    ) -> AsyncIterator[Step]:
        held, tokens = 0, self.held.setdefault(request_id, [])
        try:
            async for chunk in chunks:
                tokens += chunk.token_ids
                # The last token generated is never computed, so it takes no room.
                needed = -(-(len(tokens) + chunk.max_tokens - 1) // BLOCK) - held
                await self._take(needed)
                held += needed
                async with self._compute:
                    await asyncio.sleep(0.0002)
                for n in range(chunk.max_tokens):
                    yield Step((n,), "length" if n == chunk.max_tokens - 1 else None, 0)
        finally:
            self.free += held
            self._tell = asyncio.create_task(self._notify())

    async def _take(self, blocks: int) -> None:
        async with self._freed:
            self.waits += blocks > self.free
            await self._freed.wait_for(lambda: blocks <= self.free)
            self.free -= blocks

    async def _notify(self) -> None:
        async with self._freed:
            self._freed.notify_all()


async def _grow(
    engine: BlockEngine, admission: Admission, number: int, draw: random.Random, *, tokens: int
) -> bool:
    """One prompt that grows and changes, and is answered; whether it was answered rightly."""
    prompt = StreamedPrompt(engine, admission, request_id=f"p{number}")
    ids: list[int] = []
    try:
        for _ in range(6):
            if ids and draw.random() < 0.3:
                del ids[draw.randrange(len(ids)) :]
            ids += [number * 1000 + len(ids) + i for i in range(tokens // 6)]
            prompt.replace(ids)
            await asyncio.sleep(draw.expovariate(1.0) * 2 * SETTLE_S)
        steps = [step.token_ids async for step in prompt.answer(3, 0.0)]
    finally:
        await prompt.aclose()
    last = engine.held[f"p{number}-{prompt._runs}"]
    return steps == [(0,), (1,), (2,)] and last == ids


@pytest.mark.parametrize("mode", PREFILL_MODES)
@pytest.mark.parametrize("seed", range(5))
async def test_all_are_answered_over_a_third_of_the_room_they_would_need(
    mode: str, seed: int
) -> None:
    engine = BlockEngine(blocks=30 * 10 // 3)
    admission = Admission(engine.info.kv_capacity, block_size=BLOCK, max_sessions=30, prefill=mode)
    draw = random.Random(seed)
    async with asyncio.timeout(20):
        right = await asyncio.gather(
            *(_grow(engine, admission, n, draw, tokens=10 * BLOCK) for n in range(30))
        )
    assert all(right)
    # Nothing ever waited for blocks inside the engine, where nobody could have helped it.
    assert engine.waits == 0
    assert (engine.free, admission.free_tokens) == (engine.blocks, engine.blocks * BLOCK)
    assert (admission.waiting, admission.open_requests) == (0, 0)


async def test_clients_that_stop_in_mid_context_keep_nobody_from_an_answer() -> None:
    """Their sessions hold all of the cache, and never end by themselves."""
    engine = BlockEngine(blocks=40)
    admission = Admission(640, block_size=BLOCK, max_sessions=30, prefill="session")
    silent = [StreamedPrompt(engine, admission, request_id=f"silent{n}") for n in range(4)]
    for n, prompt in enumerate(silent):
        prompt.replace(range(1000 * n, 1000 * n + 10 * BLOCK))
    async with asyncio.timeout(10):
        while engine.free:
            await asyncio.sleep(SETTLE_S)
        draw = random.Random(0)
        right = await asyncio.gather(
            *(_grow(engine, admission, n, draw, tokens=10 * BLOCK) for n in range(10))
        )
    assert all(right)
    for prompt in silent:
        await prompt.aclose()
    assert engine.free == engine.blocks


async def test_the_watchdog_frees_an_engine_that_has_less_room_than_is_known() -> None:
    """As when requests that came by other doors hold blocks: sessions alone would stand still."""
    engine = BlockEngine(blocks=40)
    admission = Admission(10 * 640, block_size=BLOCK, max_sessions=30, watchdog_s=0.2)
    draw = random.Random(0)
    async with asyncio.timeout(25):
        right = await asyncio.gather(
            *(_grow(engine, admission, n, draw, tokens=12 * BLOCK) for n in range(12))
        )
    assert all(right)
    assert engine.waits > 0
    assert engine.free == engine.blocks


async def test_a_complete_prompt_does_not_wait_for_its_own_warming() -> None:
    engine = BlockEngine(blocks=40)
    admission = Admission(640, block_size=BLOCK, max_sessions=30, prefill="prefix")
    prompt = StreamedPrompt(engine, admission, request_id="p")
    async with engine._compute:  # the engine is busy: the warming request does not get anywhere
        prompt.replace(range(100))
        async with asyncio.timeout(5):
            while "p-1" not in engine.held:
                await asyncio.sleep(SETTLE_S)
            answer = asyncio.create_task(anext(prompt.answer(1, 0.0)))
            while "p-2" not in engine.held:
                await asyncio.sleep(SETTLE_S)
    assert (await answer).token_ids == (0,)
    assert engine.held["p-2"] == list(range(100))
    await prompt.aclose()


FAST = Latencies(prefill_tokens_per_s=1e6, overhead_s=0.001, tpot_s=0.0001)


class Usage:
    """A prompt over a mock with a prefix cache, in one mode, and what its usage says in the end."""

    def __init__(self, mode: str, *, room: int = 10_000) -> None:
        self.engine = MockEngine(FAST, kv_capacity=room, prefix_cache=True)
        self.engine.vocabulary.encode(" ".join(f"w{i}" for i in range(2000)))
        self.admission = Admission(room, block_size=BLOCK, max_sessions=8, prefill=mode)
        self.reported: list[int] = []
        self.prompt = StreamedPrompt(
            self.engine, self.admission, request_id="r", on_prefilled=self.reported.append
        )

    async def until_prefilled(self, tokens: int) -> None:
        async with asyncio.timeout(5):
            while not self.reported or self.reported[-1] != tokens:
                await asyncio.sleep(SETTLE_S / 5)

    async def counts(self) -> tuple[int, int]:
        """Cached and invalidated tokens, once answered."""
        assert len([step async for step in self.prompt.answer(2, 0.0)]) == 2
        await self.prompt.aclose()
        return self.prompt.cached_tokens, self.prompt.invalidated_tokens


@pytest.mark.parametrize(("mode", "cached"), [("session", 104), ("auto", 104), ("prefix", 96)])
async def test_usage_counts_what_was_prefilled_before(mode: str, cached: int) -> None:
    """All but the token held back in a session, whole blocks of it in the prefix cache."""
    usage = Usage(mode)
    usage.prompt.replace(range(105))
    await usage.until_prefilled(104)
    usage.prompt.extend(range(200, 210))
    assert await usage.counts() == (cached, 0)


@pytest.mark.parametrize("mode", PREFILL_MODES)
async def test_usage_counts_what_a_replacement_threw_away(mode: str) -> None:
    """Of 104 tokens 40 stay: two whole blocks of 16, so that 72 were prefilled in vain."""
    usage = Usage(mode)
    usage.prompt.replace(range(105))
    await usage.until_prefilled(104)
    usage.prompt.replace([*range(40), *range(500, 560)])
    assert await usage.counts() == (32, 72)


@pytest.mark.parametrize("mode", ["session", "auto"])
async def test_an_evicted_session_counts_what_is_found_again_and_nothing_as_invalid(
    mode: str,
) -> None:
    usage = Usage(mode, room=160)
    usage.prompt.replace(range(105))
    await usage.until_prefilled(104)
    other = StreamedPrompt(usage.engine, usage.admission, request_id="other")
    other.replace(range(1000, 1060))
    assert len([step async for step in other.answer(1, 0.0)]) == 1
    assert usage.prompt.prefilled_tokens == 0
    cached, invalid = await usage.counts()
    assert (cached % BLOCK, invalid) == (0, 0)
    assert len(usage.engine.runs["r-1"]) == 1


def test_the_embedded_engine_is_told_its_mode_and_to_go_by_priority() -> None:
    options = EngineOptions(prefill="prefix")
    assert options.environment()["S2L_PREFILL"] == "prefix"
    arguments = options.arguments(Model("a/model", "model"), port=1)
    assert arguments[arguments.index("--scheduling-policy") + 1] == "priority"
