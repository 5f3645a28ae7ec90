"""Clients of others complete text sessions against our server, unchanged: the official openai
client, asynchronous and synchronous, and the websockets library."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import websockets.asyncio.client
import websockets.sync.client
from openai import AsyncOpenAI, OpenAI

from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.mock.server import MockServer

FAST = Latencies(prefill_tokens_per_s=1e6, overhead_s=0.005, tpot_s=0.001)
SESSION: Any = {
    "type": "realtime",
    "instructions": "Answer in one word.",
    "output_modalities": ["text"],
}
TEXTS = ("Paris is the capital of France.\n", "What is the capital of France?")


def item(text: str) -> Any:
    """A message of the user."""
    content = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": "user", "content": content}


def events() -> Iterator[dict[str, Any]]:
    """What a client sends that asks for eight tokens."""
    yield {"type": "session.update", "session": SESSION}
    for text in TEXTS:
        yield {"type": "conversation.item.create", "item": item(text)}
    yield {"type": "response.create", "response": {"max_output_tokens": 8}}


def check(deltas: list[str], response: Any) -> None:
    """The deltas are the whole text, and eight tokens were counted."""
    assert "".join(deltas) == response["output"][0]["content"][0]["text"] != ""
    assert response["usage"]["output_tokens"] == 8
    assert response["status"] in ("completed", "incomplete")


async def asynchronous_openai(url: str, model: str, api_key: str = "none") -> None:
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key=api_key)
    deltas = []
    async with client, client.realtime.connect(model=model) as connection:
        await connection.session.update(session=SESSION)
        for text in TEXTS:
            await connection.conversation.item.create(item=item(text))
        await connection.response.create(response={"max_output_tokens": 8})
        async for event in connection:
            assert event.type != "error", event
            if event.type == "response.output_text.delta":
                deltas.append(event.delta)
            if event.type == "response.done":
                check(deltas, event.response.model_dump())
                return
    raise AssertionError("no end")


def synchronous_openai(url: str, model: str) -> None:
    client = OpenAI(base_url=f"{url}/v1", api_key="none")
    deltas = []
    with client, client.realtime.connect(model=model) as connection:
        connection.session.update(session=SESSION)
        for text in TEXTS:
            connection.conversation.item.create(item=item(text))
        connection.response.create(response={"max_output_tokens": 8})
        for event in connection:
            assert event.type != "error", event
            if event.type == "response.output_text.delta":
                deltas.append(event.delta)
            if event.type == "response.done":
                check(deltas, event.response.model_dump())
                return
    raise AssertionError("no end")


def address(url: str, model: str) -> str:
    return f"{url.replace('http', 'ws', 1)}/v1/realtime?model={model}"


async def asynchronous_websockets(url: str, model: str) -> None:
    deltas = []
    async with websockets.asyncio.client.connect(address(url, model), proxy=None) as socket:
        for event in events():
            await socket.send(json.dumps(event))
        async for message in socket:
            event = json.loads(message)
            assert event["type"] != "error", event
            if event["type"] == "response.output_text.delta":
                deltas.append(event["delta"])
            if event["type"] == "response.done":
                check(deltas, event["response"])
                return
    raise AssertionError("no end")


def synchronous_websockets(url: str, model: str) -> None:
    deltas = []
    with websockets.sync.client.connect(address(url, model), proxy=None) as socket:
        for event in events():
            socket.send(json.dumps(event))
        for message in socket:
            event = json.loads(message)
            assert event["type"] != "error", event
            if event["type"] == "response.output_text.delta":
                deltas.append(event["delta"])
            if event["type"] == "response.done":
                check(deltas, event["response"])
                return
    raise AssertionError("no end")


@pytest.mark.parametrize("talk", [asynchronous_openai, asynchronous_websockets])
async def test_an_asynchronous_client_completes_a_text_session(talk: Callable[..., Any]) -> None:
    async with MockServer(MockEngine(FAST)) as server, asyncio.timeout(20):
        await talk(server.url, "mock")


@pytest.mark.parametrize("talk", [synchronous_openai, synchronous_websockets])
async def test_a_synchronous_client_completes_a_text_session(talk: Callable[..., Any]) -> None:
    async with MockServer(MockEngine(FAST)) as server, asyncio.timeout(20):
        await asyncio.to_thread(talk, server.url, "mock")


async def test_several_clients_at_once() -> None:
    async with MockServer(MockEngine(FAST)) as server, asyncio.timeout(20):
        await asyncio.gather(*(asynchronous_websockets(server.url, "mock") for _ in range(20)))


@pytest.mark.parametrize("api", ["chat", "completions"])
async def test_the_official_client_streams_from_the_mocks_http_endpoints(api: str) -> None:
    """The mock measures other tools too: what the official client reads of it is right."""
    async with MockServer(MockEngine(FAST)) as server, asyncio.timeout(20):
        client: Any = AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none")
        asked: dict[str, Any] = {"model": "mock", "max_tokens": 8, "stream": True}
        asked["stream_options"] = {"include_usage": True}
        async with client:
            if api == "chat":
                messages = [{"role": "user", "content": TEXTS[1]}]
                stream = await client.chat.completions.create(messages=messages, **asked)
            else:
                stream = await client.completions.create(prompt=TEXTS[1], **asked)
            chunks = [chunk async for chunk in stream]
    *content, last = chunks
    choices = [choice for chunk in content for choice in chunk.choices]
    texts = [choice.delta.content if api == "chat" else choice.text for choice in choices]
    assert len([text for text in texts if text]) == 8
    assert choices[-1].finish_reason == "length"
    assert last.usage.completion_tokens == 8
