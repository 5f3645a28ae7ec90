"""Prefilled in any way, over a cache that is off and far too small, prompts are answered as if they
had been sent whole. vLLM runs inside this process, so that what it was fed can be read off it."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import pytest
import pytest_asyncio

from s2l.serving_adapter.embedded.model import prepare
from s2l.serving_adapter.realtime.admission import Admission
from s2l.serving_adapter.realtime.early_gate import EarlyGate
from s2l.serving_adapter.realtime.prefill_mode import PREFILL_MODES
from s2l.serving_adapter.realtime.streamed_prompt import SETTLE_S, StreamedPrompt

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

BLOCK = 32
CACHE_TOKENS = 2176
ANSWER_TOKENS = 8
N_SEQUENCES = 200
AT_ONCE = 16


class Recorded:
    """The engine's client; ``fed`` has the prompt that the engine held in the end, by request."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.fed: dict[str, list[int]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def generate(
        self, prompt: Any, sampling: Any, request_id: str, **options: Any
    ) -> AsyncIterator[Any]:
        async with aclosing(
            self._client.generate(prompt, sampling, request_id, **options)
        ) as outputs:
            async for output in outputs:
                self.fed[request_id] = list(output.prompt_token_ids)
                yield output


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[Recorded]:
    """Stock vLLM without a prefix cache, and with the room that once left 12 sessions stuck."""
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = "1"
    os.environ["VLLM_NO_USAGE_STATS"] = "1"
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    arguments = AsyncEngineArgs(
        model=prepare().source,
        dtype="float32",
        max_model_len=1024,
        block_size=BLOCK,
        num_gpu_blocks_override=CACHE_TOKENS // BLOCK + 1,
        enable_prefix_caching=False,
        enforce_eager=True,
        scheduling_policy="priority",
    )
    engine = AsyncLLM.from_engine_args(arguments)
    yield Recorded(engine)
    engine.shutdown()


def _admission(engine: Any, mode: str) -> Admission:
    return Admission(
        engine.info.kv_capacity,
        block_size=engine.info.block_size,
        max_sessions=engine.info.max_sessions,
        prefill=mode,
        prefix_cache=engine.info.settings["enable_prefix_caching"],
        gate=EarlyGate(engine.others_wait_s),
        others_wait_s=engine.others_wait_s,
    )


def _engine(client: Recorded) -> Any:
    from s2l.serving_adapter.vllm_plugin.engine import VllmEngine

    return VllmEngine(client, served_names=["m"])


def _changed(ids: list[int], draw: random.Random) -> list[int]:
    """The ids after an append, an insert, a delete or a replacement of some."""
    piece = [draw.randrange(1000, 20_000) for _ in range(draw.randint(1, 24))]
    start = draw.randrange(len(ids) + 1)
    end = draw.randint(start, len(ids))
    match draw.choice(("append", "insert", "delete", "replace")):
        case "append":
            return ids + piece
        case "insert":
            return ids[:start] + piece + ids[start:]
        case "delete":
            return ids[:start] + ids[end:] or piece
        case _:
            return ids[:start] + piece + ids[end:]


async def _streamed(
    engine: Any, admission: Admission, name: str, states: Sequence[list[int]], draw: random.Random
) -> list[int]:
    """The answer to the last state of a prompt that went through all of them."""
    prompt = StreamedPrompt(engine, admission, request_id=name)
    prompt.cache_salt = name
    try:
        for state in states:
            prompt.replace(state)
            await asyncio.sleep(draw.choice((0.0, SETTLE_S, 0.05, 0.3)))
        steps = prompt.answer(ANSWER_TOKENS, 0.0)
        return [token async for step in steps for token in step.token_ids]
    finally:
        await prompt.aclose()


async def _fresh(client: Recorded, ids: list[int], name: str) -> list[int]:
    """What an ordinary request with these tokens is answered."""
    from vllm import SamplingParams
    from vllm.inputs.engine import tokens_input

    sampling = SamplingParams(max_tokens=ANSWER_TOKENS, temperature=0.0, detokenize=False)
    async for output in client.generate(tokens_input(list(ids)), sampling, name):
        answer = output
    return list(answer.outputs[0].token_ids)


def _sequences() -> list[list[list[int]]]:
    made = []
    for seed in range(N_SEQUENCES):
        draw = random.Random(seed)
        states = [[draw.randrange(1000, 20_000) for _ in range(draw.randint(4, 24))]]
        for _ in range(draw.randint(2, 6)):
            states.append(_changed(states[-1], draw))
        made.append(states)
    return made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def expected(client: Recorded) -> list[list[int]]:
    """The answers of fresh requests, one after the other."""
    return [await _fresh(client, states[-1], f"fresh-{n}") for n, states in enumerate(_sequences())]


@pytest.mark.parametrize("mode", PREFILL_MODES)
async def test_after_any_changes_the_answer_is_that_of_a_fresh_request(
    client: Recorded, expected: list[list[int]], mode: str
) -> None:
    engine = _engine(client)
    admission = _admission(engine, mode)
    places = asyncio.Semaphore(AT_ONCE)

    async def one(n: int, states: list[list[int]]) -> list[int]:
        async with places:
            name = f"{mode}-{n}-"
            return await _streamed(engine, admission, name, states, random.Random(n))

    sequences = _sequences()
    answers = await asyncio.gather(*(one(n, states) for n, states in enumerate(sequences)))
    for n, states in enumerate(sequences):
        runs = [key for key in client.fed if key.startswith(f"s2l-{mode}-{n}-")]
        last = max(runs, key=lambda key: int(key.rsplit("-", 1)[1]))
        assert client.fed[last] == states[-1]
    assert answers == expected
    assert admission.free_tokens == engine.info.kv_capacity


@pytest.mark.parametrize("mode", PREFILL_MODES)
async def test_twelve_contexts_of_a_quarter_of_the_cache_each_all_finish(
    client: Recorded, mode: str
) -> None:
    """620 tokens each, 0.8 a second, all open at once: with nothing but sessions, none finished."""
    engine = _engine(client)
    admission = _admission(engine, mode)

    async def one(n: int) -> list[int]:
        await asyncio.sleep(n / 0.8)
        draw = random.Random(n)
        ids = [draw.randrange(1000, 20_000) for _ in range(620)]
        prompt = StreamedPrompt(engine, admission, request_id=f"pressed-{mode}-{n}")
        try:
            for end in range(100, 700, 100):
                prompt.replace(ids[:end])
                await asyncio.sleep(2.0)
            prompt.replace(ids)
            return [t async for s in prompt.answer(ANSWER_TOKENS, 0.0) for t in s.token_ids]
        finally:
            await prompt.aclose()

    async with asyncio.timeout(180):
        answers = await asyncio.gather(*(one(n) for n in range(12)))
    assert [len(answer) for answer in answers] == [ANSWER_TOKENS] * 12
    assert admission.free_tokens == engine.info.kv_capacity
