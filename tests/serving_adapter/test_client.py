"""The Realtime client against real servers: ours, ones that refuse, and ones that are no such."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from s2l.serving_adapter.base import (
    ContextChunk,
    ContextDocument,
    Finished,
    Prefilled,
    Prompt,
    ServingError,
    TextDelta,
)
from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.mock.server import MockServer
from s2l.serving_adapter.realtime.client import RealtimeAdapter
from s2l.serving_adapter.realtime.context_items import ContextItems
from s2l.serving_adapter.realtime.server_url import check_url


def _chunk(*texts: str, replaces: bool = False) -> ContextChunk:
    return ContextChunk(tuple(ContextDocument(text, text) for text in texts), replaces)


PROMPT = Prompt(
    "Answer.", (_chunk("Page one has words.\n"), _chunk("Page two.\n")), "Question?", 3, "salt"
)
FAST = Latencies(prefill_tokens_per_s=1e6, overhead_s=0.005, tpot_s=0.001)


@asynccontextmanager
async def serving(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _probe_error(url: str, api_key: str | None = None) -> ServingError:
    async with RealtimeAdapter(url, api_key=api_key) as adapter:
        with pytest.raises(ServingError) as caught:
            await adapter.probe()
    return caught.value


async def test_a_session_streams_and_reports() -> None:
    async with MockServer(MockEngine(FAST)) as server, RealtimeAdapter(server.url) as adapter:
        info = await adapter.probe()
        assert (info.server, info.model, info.separate_caches) == ("s2l-mock", "mock", True)
        async with adapter.prepare(PROMPT).open() as session:
            events = session.events()
            await session.send_chunk(0)
            assert await anext(events) == Prefilled(0, 8)
            await session.send_chunk(1)
            await session.ask()
            rest = [event async for event in events]
        assert [type(event) for event in rest] == [
            Prefilled,
            TextDelta,
            TextDelta,
            TextDelta,
            Finished,
        ]
        assert rest[0] == Prefilled(1, 14)
        finished = rest[-1]
        assert isinstance(finished, Finished)
        assert (finished.usage.prompt_tokens, finished.usage.cached_tokens) == (14, 8)
        assert (finished.usage.output_tokens, finished.finish_reason) == (3, "length")


async def test_chunks_sent_one_by_one_or_at_once_are_the_same_prompt() -> None:
    engine = MockEngine(FAST)
    async with MockServer(engine) as server, RealtimeAdapter(server.url) as adapter:
        await adapter.probe()
        texts = []
        for pause_s in (0.0, 0.03):
            async with adapter.prepare(PROMPT).open() as session:
                for index in range(2):
                    await session.send_chunk(index)
                    await asyncio.sleep(pause_s)
                await session.ask()
                events = [event async for event in session.events()]
            texts.append("".join(e.text for e in events if isinstance(e, TextDelta)))
    at_once, one_by_one = engine.runs.values()
    assert (len(at_once), len(one_by_one)) == (1, 3)
    assert sum(at_once, ()) == sum(one_by_one, ())
    assert texts[0] == texts[1]


async def test_texts_are_cut_and_counted_by_the_servers_tokenizer() -> None:
    async with MockServer(MockEngine()) as server, RealtimeAdapter(server.url) as adapter:
        assert await adapter.truncate(["a b c d", "a b", ""], [3, 3, 3]) == ["a b c", "a b", ""]
        assert await adapter.count_tokens(["a b c d", ""]) == [4, 0]


async def test_nothing_listens(unused_tcp_port: int) -> None:
    error = await _probe_error(f"http://127.0.0.1:{unused_tcp_port}")
    assert error.error_type == "refused"
    assert "cannot connect" in str(error)


async def test_a_web_server_is_not_a_realtime_server() -> None:
    async def page(request: web.Request) -> web.StreamResponse:
        return web.Response(text="hello")

    async with serving(page) as url:
        error = await _probe_error(url)
    assert error.error_type == "protocol"
    assert "VLLM_PLUGINS=s2l" in str(error)


async def test_something_that_is_not_http() -> None:
    async def garble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(garble, "127.0.0.1", 0)
    async with server:
        error = await _probe_error(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert error.error_type == "protocol"


@pytest.mark.parametrize("greeting", ["hello", "[1]", '{"type": "welcome"}', "{}"])
async def test_a_websocket_that_speaks_something_else(greeting: str) -> None:
    async def talk(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(greeting)
        await socket.receive()
        return socket

    async with serving(talk) as url:
        error = await _probe_error(url)
    assert error.error_type == "protocol"
    assert "session.created" in str(error)


async def test_a_refused_key_is_named() -> None:
    async def guard(request: web.Request) -> web.StreamResponse:
        authorised = request.headers.get("Authorization") == "Bearer right"
        return web.Response(status=404 if authorised else 401)

    async with serving(guard) as url:
        refused = await _probe_error(url, api_key="wrong")
        accepted = await _probe_error(url, api_key="right")
    assert (refused.error_type, "API key" in str(refused)) == ("rejected", True)
    assert "wrong" not in str(refused)
    assert accepted.error_type == "protocol"


async def test_an_error_event_ends_the_request_with_its_reason() -> None:
    engine = MockEngine(FAST, max_model_len=32)
    async with MockServer(engine) as server, RealtimeAdapter(server.url) as adapter:
        await adapter.probe()
        prompt = Prompt("Answer.", (_chunk("word " * 100),), "Question?", 3)
        async with adapter.prepare(prompt).open() as session:
            await session.send_chunk(0)
            with pytest.raises(ServingError, match="context_length_exceeded") as caught:
                [event async for event in session.events()]
    assert caught.value.error_type == "rejected"


async def test_a_server_that_hangs_up_is_a_disconnect() -> None:
    async def hang_up(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(json.dumps({"type": "session.created", "session": {}}))
        await socket.receive()
        await socket.close()
        return socket

    async with serving(hang_up) as url, RealtimeAdapter(url) as adapter:
        await adapter.probe()
        async with adapter.prepare(PROMPT).open() as session:
            with pytest.raises(ServingError) as caught:
                [event async for event in session.events()]
    assert caught.value.error_type == "disconnected"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("localhost:8000", "is not a server address"),
        ("ftp://host", "is not a server address"),
        ("http://", "is not a server address"),
        ("http://host:port", "no valid port"),
        ("http://user:secret@host", "S2L_API_KEY"),
    ],
)
def test_bad_addresses(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        check_url(url)
    assert "secret" not in str(caught.value)


def test_good_addresses() -> None:
    assert check_url("https://host:8443/base") == "https://host:8443/base"


async def test_replaced_context_ends_as_the_same_prompt_as_sending_it_at_once() -> None:
    """Each replacement sends only what is new, and the server holds the last one."""
    changes = (
        _chunk("a ", "b ", "c "),
        _chunk("a ", "c ", "d ", replaces=True),
        _chunk("e ", "a ", "c ", "d ", replaces=True),
        _chunk("f "),
        _chunk("d ", "a ", "f ", replaces=True),
    )
    engine = MockEngine(FAST)
    async with MockServer(engine) as server, RealtimeAdapter(server.url) as adapter:
        await adapter.probe()
        answers = []
        for chunks in (changes, (changes[-1],)):
            prompt = Prompt("Answer.", chunks, "Question?", 1, "salt")
            async with adapter.prepare(prompt).open() as session:
                events = session.events()
                for index in range(len(chunks)):
                    await session.send_chunk(index)
                    held = await asyncio.wait_for(anext(events), 5)
                    assert isinstance(held, Prefilled)
                    assert held.index == index
                await session.ask()
                rest = [event async for event in events]
            answers.append([e for e in rest if isinstance(e, TextDelta | Finished)])
    streamed, at_once = answers
    assert streamed[0] == at_once[0]
    assert isinstance(streamed[-1], Finished)
    assert isinstance(at_once[-1], Finished)
    assert streamed[-1].usage.prompt_tokens == at_once[-1].usage.prompt_tokens
    assert at_once[-1].usage.invalidated_tokens == 0
    assert (streamed[-1].usage.invalidated_tokens or 0) > 0


def test_documents_that_stay_are_not_sent_again() -> None:
    items = ContextItems()
    first = items.apply(_chunk("a", "b", "c"))
    assert [event["item"]["id"] for event in first] == ["context_0", "context_1", "context_2"]
    second = items.apply(_chunk("b", "d", "c", replaces=True))
    assert [(e["type"], e.get("item_id"), e.get("previous_item_id")) for e in second] == [
        ("conversation.item.delete", "context_0", None),
        ("conversation.item.create", None, "context_1"),
    ]
    third = items.apply(_chunk("e", "b", "d", "c", replaces=True))
    assert [(e["type"], e.get("previous_item_id")) for e in third] == [
        ("conversation.item.create", "root")
    ]
    assert items.apply(_chunk("e", "b", "d", "c", replaces=True)) == []
    assert len(items.apply(_chunk(replaces=True))) == 4
    assert items.last_items == ["context_2", "context_2", "context_2", "context_2", None]
