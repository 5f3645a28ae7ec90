"""Context that streams warms the server's prefix cache; context that waits is one request."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from scripted_server import (
    DONE,
    Heard,
    Script,
    chunk,
    probed,
    prompt_of,
    scripted,
    send_all,
    status_answer,
    stream,
    text_event,
    usage_event,
    warmed,
)

from s2l.serving_adapter.base import Prompt
from s2l.serving_adapter.openai.adapter import OpenAiAdapter

ANSWER = stream(text_event("Yes", "stop"), usage_event(prompt_tokens=90, completion_tokens=1), DONE)
A, B, C = "Herons eat fish.\n", "Otters eat crabs.\n", "Beavers eat bark.\n"


def user(server: Script, number: int) -> str:
    """The user message of a request."""
    text: str = server.posts[number].body["messages"][-1]["content"]
    return text


async def until(condition: Callable[[], Any]) -> None:
    """Wait until something was heard."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


async def end(heard: Heard) -> None:
    async with asyncio.timeout(10):
        await heard.over.wait()


async def stream_to_the_end(adapter: OpenAiAdapter, prompt: Prompt, salt: str) -> Heard:
    """Send each chunk when the one before is prefilled, then the question."""
    heard = Heard()
    session = adapter.prepare(prompt).start(heard, salt=salt)
    for index in range(len(prompt.chunks)):
        session.send_chunk(index)
        await until(lambda n=index: len(heard.of("prefilled")) == n + 1)
    session.ask()
    await end(heard)
    return heard


async def test_waiting_sends_one_request() -> None:
    prompt = prompt_of(chunk(A), chunk(B, C))
    async with scripted(ANSWER) as server, probed(server.url) as adapter:
        heard = Heard()
        send_all(adapter.prepare(prompt).start(heard, salt="s"), 2)
        await end(heard)
    assert len(server.posts) == 1
    assert user(server, 0) == A + B + C + "Why?"
    assert heard.calls[:3] == [("sent", 0), ("sent", 1), ("asked",)]
    body = server.posts[0].body
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("tiny", 8, 0.0)


async def test_streaming_warms_up_what_has_arrived() -> None:
    prompt = prompt_of(chunk(A), chunk(B))
    async with (
        scripted([warmed(20)], [warmed(40)], ANSWER) as server,
        probed(server.url) as adapter,
    ):
        heard = Heard()
        session = adapter.prepare(prompt).start(heard, salt="s")
        session.send_chunk(0)
        await until(lambda: heard.of("prefilled"))
        session.send_chunk(1)
        await until(lambda: len(heard.of("prefilled")) == 2)
        session.ask()
        await end(heard)
    assert [user(server, n) for n in range(3)] == [A, A + B, A + B + "Why?"]
    assert [post.body["max_tokens"] for post in server.posts] == [1, 1, 8]
    assert [post.body["stream"] for post in server.posts] == [False, False, True]
    assert heard.calls == [
        ("sent", 0),
        ("prefilled", 0, 20),
        ("sent", 1),
        ("prefilled", 1, 40),
        ("asked",),
        ("text", "Yes", None),
        ("finished", "stop"),
    ]
    assert heard.usage is not None
    assert (heard.usage.discarded_tokens, heard.usage.invalidated_tokens) == (2, 0)


async def test_what_arrives_meanwhile_is_merged_into_the_next() -> None:
    prompt = prompt_of(chunk(A), chunk(B), chunk(C))
    gate = asyncio.Event()
    async with (
        scripted([gate, warmed(20)], [warmed(60)], ANSWER) as server,
        probed(server.url) as adapter,
    ):
        heard = Heard()
        session = adapter.prepare(prompt).start(heard, salt="s")
        session.send_chunk(0)
        await server.until(lambda: len(server.posts) == 1)
        session.send_chunk(1)
        session.send_chunk(2)
        gate.set()
        await until(lambda: len(heard.of("prefilled")) == 3)
        session.ask()
        await end(heard)
    assert [user(server, n) for n in range(2)] == [A, A + B + C]
    assert heard.of("prefilled") == [
        ("prefilled", 0, 20),
        ("prefilled", 1, 60),
        ("prefilled", 2, 60),
    ]


async def test_the_question_does_not_wait_for_a_warm_up_and_drops_what_is_queued() -> None:
    prompt = prompt_of(chunk(A), chunk(B))
    gate = asyncio.Event()
    async with (
        scripted([gate, warmed(20)], ANSWER) as server,
        probed(server.url) as adapter,
    ):
        heard = Heard()
        session = adapter.prepare(prompt).start(heard, salt="s")
        session.send_chunk(0)
        await server.until(lambda: len(server.posts) == 1)
        session.send_chunk(1)
        session.ask()
        await end(heard)
        # The warm-up was of use until now: it is given up only with the request.
        await server.until(lambda: server.posts[0].connection in server.lost)
    assert len(server.posts) == 2
    assert server.posts[0].connection != server.posts[1].connection
    assert heard.of("sent", "asked") == [("sent", 0), ("sent", 1), ("asked",)]


async def test_replaced_context_cancels_a_warm_up_that_is_of_no_use() -> None:
    prompt = prompt_of(chunk(A, B), chunk(C, A, replaces=True))
    gate = asyncio.Event()
    async with (
        scripted([gate], [warmed(40)], ANSWER) as server,
        probed(server.url) as adapter,
    ):
        heard = Heard()
        session = adapter.prepare(prompt).start(heard, salt="s")
        session.send_chunk(0)
        await server.until(lambda: len(server.posts) == 1)
        session.send_chunk(1)
        await server.until(lambda: server.posts[0].connection in server.lost)
        await until(lambda: heard.of("prefilled"))
        session.ask()
        await end(heard)
    assert [user(server, n) for n in range(3)] == [A + B, C + A, C + A + "Why?"]
    assert heard.usage is not None
    assert heard.usage.discarded_tokens == 1
    # Cancelled before it answered, so its 37 of 48 bytes count whole, at 40 tokens in 48 bytes.
    assert heard.usage.invalidated_tokens == 31


async def test_a_replacement_that_goes_on_from_the_running_warm_up_lets_it_run() -> None:
    prompt = prompt_of(chunk(A), chunk(A, B, replaces=True))
    gate = asyncio.Event()
    async with (
        scripted([gate, warmed(20)], [warmed(40)], ANSWER) as server,
        probed(server.url) as adapter,
    ):
        heard = Heard()
        session = adapter.prepare(prompt).start(heard, salt="s")
        session.send_chunk(0)
        await server.until(lambda: len(server.posts) == 1)
        session.send_chunk(1)
        gate.set()
        await until(lambda: len(heard.of("prefilled")) == 2)
        session.ask()
        await end(heard)
    assert heard.usage is not None
    assert (heard.usage.discarded_tokens, heard.usage.invalidated_tokens) == (2, 0)


async def test_prefilled_and_replaced_tokens_are_counted() -> None:
    """A and B were prefilled, then B went: what the server counted for it is thrown away."""
    prompt = prompt_of(chunk(A), chunk(B), chunk(A, C, replaces=True))
    async with (
        scripted([warmed(20)], [warmed(45)], [warmed(41)], ANSWER) as server,
        probed(server.url) as adapter,
    ):
        heard = Heard()
        session = adapter.prepare(prompt).start(heard, salt="s")
        for index in range(3):
            session.send_chunk(index)
            await until(lambda n=index: len(heard.of("prefilled")) == n + 1)
        session.ask()
        await end(heard)
    assert heard.usage is not None
    assert (heard.usage.discarded_tokens, heard.usage.invalidated_tokens) == (3, 25)


async def test_chunks_that_add_nothing_send_nothing() -> None:
    prompt = prompt_of(chunk(), chunk(A), chunk(A, replaces=True))
    async with scripted([warmed(20)], ANSWER) as server, probed(server.url) as adapter:
        heard = Heard()
        session = adapter.prepare(prompt).start(heard, salt="s")
        session.send_chunk(0)
        await until(lambda: heard.of("sent"))
        assert server.posts == []
        session.send_chunk(1)
        await until(lambda: heard.of("prefilled"))
        session.send_chunk(2)
        await until(lambda: len(heard.of("sent")) == 3)
        session.ask()
        await end(heard)
    assert len(server.posts) == 2


async def test_a_question_in_the_middle_of_the_retrieval_has_the_context_so_far() -> None:
    prompt = prompt_of(chunk(A), chunk(B))
    async with scripted(ANSWER) as server, probed(server.url) as adapter:
        heard = Heard()
        session = adapter.prepare(prompt).start(heard, salt="s")
        send_all(session, 1)
        session.send_chunk(1)
        await end(heard)
    assert user(server, 0) == A + "Why?"
    assert heard.of("sent") == [("sent", 0)]
    assert len(server.posts) == 1


async def test_a_warm_up_that_fails_fails_the_request() -> None:
    prompt = prompt_of(chunk(A), chunk(B))
    refused = [status_answer(400, body=b'"too long"')]
    async with scripted(refused) as server, probed(server.url) as adapter:
        heard = Heard()
        adapter.prepare(prompt).start(heard, salt="s").send_chunk(0)
        await end(heard)
    assert heard.calls == [("sent", 0), ("failed", "rejected")]
    assert str(heard.error) == "early prefill: HTTP 400: too long"


async def test_closing_in_the_middle_of_a_warm_up_cancels_it() -> None:
    never = asyncio.Event()
    async with scripted([never]) as server, probed(server.url) as adapter:
        heard = Heard()
        session = adapter.prepare(prompt_of(chunk(A))).start(heard, salt="s")
        session.send_chunk(0)
        await server.until(lambda: len(server.posts) == 1)
        session.close()
        session.ask()
        await server.until(lambda: server.posts[0].connection in server.lost)
    assert heard.calls == [("sent", 0)]


@pytest.mark.parametrize("api", ["chat", "completions"])
@pytest.mark.parametrize("instructions", ["Be brief.\n", ""])
async def test_less_context_is_how_more_context_begins(api: str, instructions: str) -> None:
    prompt = Prompt(instructions, (chunk('"A" \\ \n'), chunk("Ä€😀")), "Why?", 4)
    warm_ups = [warmed(1)], [warmed(2)]
    async with (
        scripted(*warm_ups, ANSWER, *warm_ups, ANSWER) as server,
        probed(server.url, api=api) as adapter,
    ):
        for salt in ("one", "two"):
            await stream_to_the_end(adapter, prompt, salt)
    texts = [_flat(post.body, api) for post in server.posts[:3]]
    assert all(longer.startswith(shorter) for shorter, longer in pairwise(texts))
    nonce, text = texts[2].split("\n", 1)
    assert text == instructions + '"A" \\ \nÄ€😀Why?'
    assert (len(nonce), nonce.isdecimal()) == (16, True)
    other = _flat(server.posts[3].body, api)
    assert len(other) == len(texts[0])
    assert other[:16] != nonce
    assert [post.path for post in server.posts] == [
        "/v1/chat/completions" if api == "chat" else "/v1/completions"
    ] * len(server.posts)


def _flat(body: dict[str, Any], api: str) -> str:
    if api == "completions":
        return str(body["prompt"])
    return "".join(message["content"] for message in body["messages"])
