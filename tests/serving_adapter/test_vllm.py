"""The plugin inside stock vLLM: right answers, nothing kept, nobody let in."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from openai import AsyncOpenAI

from s2l.serving_adapter.base import (
    ContextChunk,
    ContextDocument,
    Prompt,
    ServingError,
    Session,
    Usage,
)
from s2l.serving_adapter.realtime.client import RealtimeAdapter

pytestmark = pytest.mark.engine

INSTRUCTIONS = "Answer the question based only on the provided context."
PAGES = (
    "The heron is a wading bird. It eats fish and frogs, and stands still for hours.\n",
    "The otter is a mammal of rivers. It eats fish, crabs and sometimes birds.\n",
    "The beaver builds dams of wood and mud. It eats bark, and stores branches.\n",
)
QUESTION = "Question: What do herons and otters both eat? Answer with a list and say why."


@dataclass(frozen=True)
class Finished:
    usage: Usage


class Heard:
    """A listener whose events can be waited for: chunks held (int), texts, and the end."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[int | str | Finished | ServingError] = asyncio.Queue()
        self.on_sent = lambda _: None
        self.on_asked = lambda: None

    def on_prefilled(self, index: int, tokens: int) -> None:
        self._events.put_nowait(index)

    def on_text(self, text: str, tokens: int | None, *, reasoning: bool = False) -> None:
        self._events.put_nowait(text)

    def on_finished(self, usage: Usage, finish_reason: str) -> None:
        self._events.put_nowait(Finished(usage))

    def on_failed(self, error: ServingError) -> None:
        self._events.put_nowait(error)

    async def next(self) -> int | str | Finished:
        event = await self._events.get()
        if isinstance(event, ServingError):
            raise event
        return event

    async def until_held(self, index: int) -> None:
        while await self.next() != index:
            pass

    async def until_text(self) -> None:
        while not isinstance(await self.next(), str):
            pass

    async def answer(self) -> tuple[str, Usage]:
        text = ""
        while not isinstance(event := await self.next(), Finished):
            text += event if isinstance(event, str) else ""
        return text, event.usage


@asynccontextmanager
async def _opened(
    adapter: RealtimeAdapter, prompt: Prompt, salt: str
) -> AsyncIterator[tuple[Session, Heard]]:
    heard = Heard()
    session = adapter.prepare(prompt).start(heard, salt=salt)
    try:
        yield session, heard
    finally:
        session.close()


def _prompt(*, max_tokens: int = 24) -> Prompt:
    return Prompt(INSTRUCTIONS, tuple(map(_chunk, PAGES)), QUESTION, max_tokens)


def _chunk(*texts: str, replaces: bool = False) -> ContextChunk:
    return ContextChunk(tuple(ContextDocument(text, text) for text in texts), replaces)


async def _answer(
    adapter: RealtimeAdapter, prompt: Prompt, salt: str, *, stream: bool
) -> tuple[str, Usage]:
    """The answer, sending each page once the one before is prefilled, or all in one burst."""
    async with _opened(adapter, prompt, salt) as (session, heard):
        for index in range(len(prompt.chunks)):
            session.send_chunk(index)
            if stream:
                await heard.until_held(index)
        session.ask()
        return await heard.answer()


async def _tokens(http: aiohttp.ClientSession, text: str) -> list[int]:
    body = {"prompt": text, "add_special_tokens": False}
    async with http.post("/tokenize", json=body) as response:
        return list((await response.json())["tokens"])


async def _plain_answer(vllm: Any, max_tokens: int = 24) -> tuple[str, int]:
    """What the server's ordinary completions endpoint says to the same token ids."""
    template = f"<|im_start|>system\n{INSTRUCTIONS}<|im_end|>\n<|im_start|>user\n"
    pieces = (template, *PAGES, QUESTION, "<|im_end|>\n<|im_start|>assistant\n")
    headers = {"Authorization": f"Bearer {vllm.api_key}"}
    async with aiohttp.ClientSession(vllm.url, headers=headers) as http:
        token_ids = [token for piece in pieces for token in await _tokens(http, piece)]
        body = {"model": vllm.model, "prompt": token_ids, "max_tokens": max_tokens}
        body |= {"temperature": 0, "cache_salt": "plain"}
        async with http.post("/v1/completions", json=body) as response:
            answer = await response.json()
    return answer["choices"][0]["text"], len(token_ids)


async def test_streamed_and_waited_answers_equal_that_of_an_ordinary_request(vllm: Any) -> None:
    expected, n_tokens = await _plain_answer(vllm)
    async with RealtimeAdapter(vllm.url, api_key=vllm.api_key) as adapter:
        await adapter.probe()
        streamed, streamed_usage = await _answer(adapter, _prompt(), "a", stream=True)
        waited, waited_usage = await _answer(adapter, _prompt(), "b", stream=False)
    assert streamed == waited == expected != ""
    assert streamed_usage.prompt_tokens == waited_usage.prompt_tokens == n_tokens
    assert waited_usage.cached_tokens == 0
    # All but the token held back, the question and the end of the template.
    assert (streamed_usage.cached_tokens or 0) > 0.6 * n_tokens
    assert streamed_usage.output_tokens == waited_usage.output_tokens


async def test_replaced_context_answers_as_if_it_had_been_the_only_one(vllm: Any) -> None:
    """20 random sequences of changes that end in the context of an ordinary request."""
    draw = random.Random(0)
    expected, n_tokens = await _plain_answer(vllm)
    async with RealtimeAdapter(vllm.url, api_key=vllm.api_key) as adapter:
        await adapter.probe()
        for number in range(20):
            states = [draw.sample(PAGES, draw.randint(0, 3)) for _ in range(draw.randint(1, 5))]
            chunks = (*(_chunk(*s, replaces=True) for s in states), _chunk(*PAGES, replaces=True))
            prompt = Prompt(INSTRUCTIONS, chunks, QUESTION, 24)
            async with _opened(adapter, prompt, f"replaced-{number}") as (session, heard):
                for index in range(len(chunks)):
                    session.send_chunk(index)
                    await asyncio.sleep(draw.choice((0.0, 0.01, 0.1)))
                session.ask()
                text, usage = await heard.answer()
            assert text == expected
            assert usage.prompt_tokens == n_tokens


async def test_the_common_prefix_of_replaced_context_is_kept(vllm: Any) -> None:
    long = "The heron stands in the shallow water and waits for a fish to come near. " * 8
    chunks = (_chunk(long, PAGES[0]), _chunk(long, PAGES[1], replaces=True))
    prompt = Prompt(INSTRUCTIONS, chunks, QUESTION, 2)
    async with RealtimeAdapter(vllm.url, api_key=vllm.api_key) as adapter:
        await adapter.probe()
        async with _opened(adapter, prompt, "kept") as (session, heard):
            for index in range(2):
                session.send_chunk(index)
                await heard.until_held(index)
            session.ask()
            _, usage = await heard.answer()
    headers = {"Authorization": f"Bearer {vllm.api_key}"}
    async with aiohttp.ClientSession(vllm.url, headers=headers) as http:
        replaced = len(await _tokens(http, PAGES[0]))
    # Thrown away: the page that went, and less than a block of 32 tokens before it.
    assert replaced - 1 <= (usage.invalidated_tokens or 0) < replaced + 32


async def test_sessions_of_one_salt_share_the_prefix_cache_and_others_do_not(vllm: Any) -> None:
    async with RealtimeAdapter(vllm.url, api_key=vllm.api_key) as adapter:
        await adapter.probe()
        _, first = await _answer(adapter, _prompt(), "shared", stream=False)
        _, second = await _answer(adapter, _prompt(), "shared", stream=False)
        _, other = await _answer(adapter, _prompt(), "another", stream=False)
    assert first.cached_tokens == other.cached_tokens == 0
    assert (second.cached_tokens or 0) >= 32


async def _kv_usage(vllm: Any) -> float:
    async with aiohttp.ClientSession() as http, http.get(f"{vllm.url}/metrics") as response:
        lines = (await response.text()).splitlines()
    (usage,) = (line for line in lines if line.startswith("vllm:kv_cache_usage_perc"))
    return float(usage.split()[-1])


async def _until_idle(vllm: Any) -> None:
    async with asyncio.timeout(30):
        while await _kv_usage(vllm) > 0:
            # The gauge moves only when the engine steps: give it something to do.
            async with RealtimeAdapter(vllm.url, api_key=vllm.api_key) as adapter:
                await _answer(adapter, _prompt(max_tokens=1), "idle", stream=False)


async def test_clients_that_vanish_leave_no_kv_blocks_behind(vllm: Any) -> None:
    async with RealtimeAdapter(vllm.url, api_key=vllm.api_key) as adapter:
        await adapter.probe()
        for number in range(6):
            prompt = _prompt(max_tokens=500)
            async with _opened(adapter, prompt, f"gone-{number}") as (session, heard):
                session.send_chunk(0)
                await heard.until_held(0)
                if number % 2:  # half of them leave in the middle of the answer
                    session.ask()
                    await heard.until_text()
        text, _ = await _answer(adapter, _prompt(), "after", stream=True)
    assert text
    await _until_idle(vllm)


async def test_a_context_beyond_the_model_is_refused_and_the_engine_lives(vllm: Any) -> None:
    async with RealtimeAdapter(vllm.url, api_key=vllm.api_key) as adapter:
        await adapter.probe()
        long = Prompt(INSTRUCTIONS, (_chunk("word " * 1500),) * 2, QUESTION, 4)
        async with _opened(adapter, long, "long") as (session, heard):
            session.send_chunk(0)
            session.send_chunk(1)
            with pytest.raises(ServingError, match="the limit is 2048"):
                await heard.answer()
        text, _ = await _answer(adapter, _prompt(), "lives", stream=True)
    assert text


async def test_more_open_sessions_than_the_cache_holds_all_finish(vllm: Any) -> None:
    """Twice as many as fit stream at once: stock vLLM alone would leave all of them stuck."""
    async with RealtimeAdapter(vllm.url, api_key=vllm.api_key) as adapter:
        await adapter.probe()
        answers = await asyncio.gather(
            *(_answer(adapter, _prompt(max_tokens=2), f"many-{n}", stream=True) for n in range(24))
        )
    assert len({text for text, _ in answers}) == 1


async def test_without_the_key_nobody_is_let_in(vllm: Any) -> None:
    for key in (None, "wrong"):
        async with RealtimeAdapter(vllm.url, api_key=key) as adapter:
            with pytest.raises(ServingError, match="API key was not accepted"):
                await adapter.probe()


async def test_the_official_client_completes_a_text_session(vllm: Any) -> None:
    client = AsyncOpenAI(base_url=f"{vllm.url}/v1", api_key=vllm.api_key)
    deltas = []
    async with client, client.realtime.connect(model=vllm.model) as connection:
        session = {"type": "realtime", "instructions": INSTRUCTIONS, "output_modalities": ["text"]}
        await connection.session.update(session=session)  # type: ignore[arg-type]
        for text in (*PAGES, QUESTION):
            content = [{"type": "input_text", "text": text}]
            item = {"type": "message", "role": "user", "content": content}
            await connection.conversation.item.create(item=item)  # type: ignore[arg-type]
        await connection.response.create(response={"max_output_tokens": 24})
        async for event in connection:
            assert event.type != "error", event
            if event.type == "response.output_text.delta":
                deltas.append(event.delta)
            if event.type == "response.done":
                break
    expected, n_tokens = await _plain_answer(vllm)
    assert "".join(deltas) == expected
    assert event.response.usage is not None
    assert event.response.usage.input_tokens == n_tokens
