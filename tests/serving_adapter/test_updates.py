"""Context that is replaced: what the engine holds in the end is the final prompt, and no more."""

import asyncio
import random
from itertools import count

import pytest

from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.realtime.admission import Admission
from s2l.serving_adapter.realtime.conversation import Conversation
from s2l.serving_adapter.realtime.prefill_mode import PREFILL_MODES
from s2l.serving_adapter.realtime.streamed_prompt import SETTLE_S, StreamedPrompt

FAST = Latencies(prefill_tokens_per_s=1e6, overhead_s=0.001, tpot_s=0.0001)


def _engine(latencies: Latencies = FAST) -> MockEngine:
    engine = MockEngine(latencies)
    engine.vocabulary.encode(" ".join(f"w{i}" for i in range(2000)))
    return engine


def _prompt(engine: MockEngine, mode: str = "auto") -> StreamedPrompt:
    admission = Admission(1_000_000, block_size=16, max_sessions=8, prefill=mode)
    return StreamedPrompt(engine, admission, request_id="r")


async def _held(engine: MockEngine, prompt: StreamedPrompt) -> tuple[int, ...]:
    """What the engine holds once the prompt was answered."""
    steps = [step async for step in prompt.answer(1, 0.0)]
    assert len(steps) == 1
    return tuple(token for chunk in list(engine.runs.values())[-1] for token in chunk)


async def _until_prefilled(prompt: StreamedPrompt, tokens: int) -> None:
    async with asyncio.timeout(5):
        while prompt.prefilled_tokens < tokens:
            await asyncio.sleep(SETTLE_S / 5)


async def test_what_was_fed_and_still_begins_the_prompt_is_kept() -> None:
    engine = _engine()
    prompt = _prompt(engine)
    prompt.replace(range(100))
    await _until_prefilled(prompt, 99)
    prompt.replace([*range(100), *range(500, 550)])
    assert await _held(engine, prompt) == (*range(100), *range(500, 550))
    assert len(engine.runs) == 1
    assert prompt.invalidated_tokens == 0


async def test_replaced_context_is_fed_anew_and_counted() -> None:
    engine = _engine()
    prompt = _prompt(engine)
    prompt.replace(range(100))
    await _until_prefilled(prompt, 99)
    prompt.replace([*range(40), *range(500, 560)])
    assert prompt.prefilled_tokens == 40
    assert await _held(engine, prompt) == (*range(40), *range(500, 560))
    assert len(engine.runs) == 2
    # The mock has no prefix cache: all 99 that were fed are fed again or thrown away.
    assert prompt.invalidated_tokens == 99


async def test_a_prompt_cut_back_to_what_was_fed_is_still_answered() -> None:
    """The last chunk may not be empty, and here all of the prompt was fed before."""
    engine = _engine()
    prompt = _prompt(engine)
    prompt.replace(range(100))
    await _until_prefilled(prompt, 99)
    prompt.replace(range(99))
    assert await _held(engine, prompt) == tuple(range(99))
    assert all(chunk for chunks in engine.runs.values() for chunk in chunks)


async def test_a_replacement_cancels_the_chunk_in_flight() -> None:
    engine = _engine(Latencies(prefill_tokens_per_s=1e9, overhead_s=60.0))
    prompt = _prompt(engine)
    prompt.replace(range(100))
    async with asyncio.timeout(5):
        while not engine.runs.get("r-1"):
            await asyncio.sleep(SETTLE_S)
        prompt.replace(range(500, 600))
        while not engine.runs.get("r-2"):  # long before the minute that the first would take
            await asyncio.sleep(SETTLE_S)
    assert engine.open_runs == 1
    await prompt.aclose()
    assert engine.open_runs == 0


async def test_a_change_that_is_taken_back_at_once_costs_nothing() -> None:
    engine = _engine()
    prompt = _prompt(engine)
    prompt.replace(range(100))
    await _until_prefilled(prompt, 99)
    with prompt.changing():
        prompt.replace(range(50))
        await asyncio.sleep(0)
        prompt.replace(range(120))
    assert await _held(engine, prompt) == tuple(range(120))
    assert len(engine.runs) == 1


@pytest.mark.parametrize("mode", PREFILL_MODES)
@pytest.mark.parametrize("seed", range(200))
async def test_after_any_changes_the_engine_holds_the_final_prompt(mode: str, seed: int) -> None:
    """Appends, inserts, deletes and replacements in random order, with and without pauses."""
    draw = random.Random(seed)
    engine = _engine()
    prompt = _prompt(engine, mode)
    conversation = Conversation(range(10))
    names, ids = count(), list[str]()
    for _ in range(draw.randint(3, 12)):
        what = draw.choice(("append", "insert", "delete", "replace"))
        if what == "delete" and ids:
            conversation.delete(ids.pop(draw.randrange(len(ids))))
        elif what == "replace":
            for item_id in ids:
                conversation.delete(item_id)
            ids = []
            for _ in range(draw.randint(1, 4)):
                _insert(conversation, ids, f"i{next(names)}", len(ids), draw)
        else:
            place = draw.randint(0, len(ids)) if what == "insert" else len(ids)
            _insert(conversation, ids, f"i{next(names)}", place, draw)
        prompt.replace(conversation.tokens)
        await asyncio.sleep(draw.choice((0, 0, SETTLE_S / 2, 2 * SETTLE_S)))
    _insert(conversation, ids, "question", len(ids), draw)
    prompt.replace(conversation.tokens)
    assert await _held(engine, prompt) == tuple(conversation.tokens)
    for chunks in engine.runs.values():
        assert all(chunks)


def _insert(
    conversation: Conversation, ids: list[str], name: str, place: int, draw: random.Random
) -> None:
    # Few different tokens, so that prompts that differ often begin alike all the same.
    tokens = [draw.choice((20, 21)) for _ in range(draw.randint(1, 30))]
    conversation.insert(name, tokens, ids[place - 1] if place else None)
    ids.insert(place, name)
