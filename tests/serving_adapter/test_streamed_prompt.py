"""A prompt is fed in chunks, one in flight, and only the last chunk's tokens are the answer."""

import asyncio

import pytest

from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.realtime.admission import Admission
from s2l.serving_adapter.realtime.streamed_prompt import SETTLE_S, StreamedPrompt

SLOW = Latencies(prefill_tokens_per_s=1e9, overhead_s=10 * SETTLE_S, tpot_s=0.001)


class Harness:
    def __init__(self, latencies: Latencies = SLOW) -> None:
        self.engine = MockEngine(latencies)
        self.engine.vocabulary.encode(" ".join(f"w{i}" for i in range(100)))  # ids 0..99
        self.admission = Admission(1_000_000, block_size=16, max_sessions=4)
        self.reported: list[int] = []
        self.held = asyncio.Event()
        self.prompt = StreamedPrompt(
            self.engine, self.admission, request_id="r", on_prefilled=self._on_prefilled
        )

    def _on_prefilled(self, tokens: int) -> None:
        self.reported.append(tokens)
        self.held.set()

    async def until_prefilled(self) -> None:
        self.held.clear()
        await asyncio.wait_for(self.held.wait(), 5)

    async def answer(self, max_tokens: int = 3) -> list[tuple[int, ...]]:
        return [step.token_ids async for step in self.prompt.answer(max_tokens, 0.0)]

    @property
    def chunks(self) -> list[tuple[int, ...]]:
        return self.engine.runs["r-1"]


async def test_what_comes_in_one_burst_is_one_chunk() -> None:
    h = Harness()
    for start in range(0, 30, 10):
        h.prompt.extend(range(start, start + 10))
    steps = await h.answer()
    assert h.chunks == [tuple(range(30))]
    assert len(steps) == 3


async def test_what_comes_while_a_chunk_is_in_flight_is_merged_into_the_next() -> None:
    h = Harness()
    h.prompt.extend(range(10))
    while not h.engine.runs:
        await asyncio.sleep(0)
    while not h.chunks:
        await asyncio.sleep(SETTLE_S)
    h.prompt.extend(range(10, 20))
    h.prompt.extend(range(20, 30))
    await h.answer()
    assert h.chunks == [tuple(range(9)), tuple(range(9, 30))]


async def test_the_last_token_is_held_back_so_that_the_last_chunk_is_never_empty() -> None:
    h = Harness()
    h.prompt.extend(range(10))
    await h.until_prefilled()
    assert (h.prompt.prefilled_tokens, h.prompt.tokens) == (9, 10)
    await h.answer()
    assert h.chunks == [tuple(range(9)), (9,)]


async def test_no_token_of_an_intermediate_chunk_is_in_the_answer() -> None:
    h = Harness()
    for start in (0, 10):
        h.prompt.extend(range(start, start + 10))
        await h.until_prefilled()
    steps = await h.answer()
    dropped = h.engine.vocabulary.encode(" dropped")[0]
    assert len(h.chunks) == 3
    assert all(dropped not in step for step in steps)
    assert h.reported == [9, 19]


async def test_a_chunk_waits_while_more_is_known_to_come() -> None:
    h = Harness()
    with h.prompt.changing():
        h.prompt.extend(range(10))
        await asyncio.sleep(4 * SETTLE_S)
        assert not h.engine.runs.get("r-1")
        h.prompt.extend(range(10, 20))
    await h.until_prefilled()
    assert h.chunks == [tuple(range(19))]
    await h.prompt.aclose()


async def test_the_engine_gets_copies_of_token_lists() -> None:
    h = Harness()
    tokens = list(range(10))
    h.prompt.extend(tokens)
    tokens.append(99)
    await h.answer()
    assert h.chunks == [tuple(range(10))]


async def test_closing_aborts_and_frees_the_reservation() -> None:
    h = Harness()
    h.prompt.extend(range(10))
    await h.until_prefilled()
    assert h.engine.open_runs == 1
    await h.prompt.aclose()
    assert h.engine.open_runs == 0
    assert h.admission.free_tokens == 1_000_000


async def test_an_answer_frees_the_reservation() -> None:
    h = Harness()
    h.prompt.extend(range(10))
    await h.answer()
    assert h.admission.free_tokens == 1_000_000
    assert h.engine.open_runs == 0


async def test_an_engine_that_fails_fails_the_answer() -> None:
    class Broken(MockEngine):
        async def run(self, request_id, chunks, cache_salt):  # type: ignore[no-untyped-def]
            async for _ in chunks:
                raise RuntimeError("out of order")
            yield

    h = Harness()
    prompt = StreamedPrompt(Broken(), h.admission, request_id="r")
    prompt.extend(range(10))
    with pytest.raises(RuntimeError, match="out of order"):
        [step async for step in prompt.answer(1, 0.0)]
    assert h.admission.free_tokens == 1_000_000


async def test_an_empty_prompt_has_no_answer() -> None:
    with pytest.raises(ValueError, match="empty prompt"):
        [step async for step in Harness().prompt.answer(1, 0.0)]
