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
    PreparedRequest,
    Prompt,
    ServingError,
    Session,
    Usage,
)
from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.mock.server import MockServer
from s2l.serving_adapter.realtime.client import RealtimeAdapter
from s2l.serving_adapter.realtime.context_items import ContextItems
from s2l.serving_adapter.realtime.server_url import check_url


def _chunk(*texts: str, replaces: bool = False) -> ContextChunk:
    return ContextChunk(tuple(ContextDocument(text, text) for text in texts), replaces)


PROMPT = Prompt("Answer.", (_chunk("Page one has words.\n"), _chunk("Page two.\n")), "Question?", 3)
FAST = Latencies(prefill_tokens_per_s=1e6, overhead_s=0.005, tpot_s=0.001)


class Told:
    """A listener that keeps what it was told, in order, and lets it be waited for."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.ended = False
        self._more = asyncio.Event()

    def on_sent(self, index: int) -> None:
        self._note("sent", index)

    def on_asked(self) -> None:
        self._note("asked")

    def on_prefilled(self, index: int, tokens: int) -> None:
        self._note("prefilled", index, tokens)

    def on_text(self, text: str, tokens: int | None, *, reasoning: bool = False) -> None:
        self._note("text", text, tokens)

    def on_finished(self, usage: Usage, finish_reason: str) -> None:
        self.ended = True
        self._note("finished", usage, finish_reason)

    def on_failed(self, error: ServingError) -> None:
        self.ended = True
        self._note("failed", error)

    def _note(self, *call: object) -> None:
        self.calls.append(call)
        self._more.set()

    def of(self, kind: str) -> list[tuple[object, ...]]:
        return [call for call in self.calls if call[0] == kind]

    @property
    def text(self) -> str:
        return "".join(str(call[1]) for call in self.of("text"))

    async def until(self, *call: object) -> None:
        """Wait for a call that begins like this."""
        async with asyncio.timeout(5):
            while not any(had[: len(call)] == call for had in self.calls):
                self._more.clear()
                await self._more.wait()

    async def end(self) -> tuple[object, ...]:
        async with asyncio.timeout(5):
            while not self.ended:
                self._more.clear()
                await self._more.wait()
        return self.calls[-1]


def begin(request: PreparedRequest, salt: str = "salt") -> tuple[Session, Told]:
    told = Told()
    return request.start(told, salt=salt), told


async def _failure(request: PreparedRequest) -> ServingError:
    session, told = begin(request)
    session.send_chunk(0)
    session.ask()
    kind, error = await told.end()
    assert kind == "failed"
    assert isinstance(error, ServingError)
    return error


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
        assert (info.server, info.model) == ("s2l-mock", "mock")
        assert info.capabilities.separate_caches
        session, told = begin(adapter.prepare(PROMPT))
        session.send_chunk(0)
        assert told.calls == []  # the connection is not there yet, and nothing waits for it
        await told.until("prefilled", 0, 8)
        session.send_chunk(1)
        session.ask()
        kind, usage, reason = await told.end()
    assert [call[0] for call in told.calls] == [
        "sent",
        "prefilled",
        "sent",
        "asked",
        "prefilled",
        *["text"] * 3,
        "finished",
    ]
    assert told.of("prefilled") == [("prefilled", 0, 8), ("prefilled", 1, 14)]
    assert isinstance(usage, Usage)
    assert (usage.prompt_tokens, usage.cached_tokens, usage.output_tokens) == (14, 8, 3)
    assert (kind, reason) == ("finished", "length")


async def test_what_is_sent_before_the_connection_is_there_is_sent_in_order() -> None:
    engine = MockEngine(FAST)
    async with MockServer(engine) as server, RealtimeAdapter(server.url) as adapter:
        await adapter.probe()
        session, told = begin(adapter.prepare(PROMPT))
        session.send_chunk(0)
        session.send_chunk(1)
        session.ask()
        await told.end()
    assert told.calls[:3] == [("sent", 0), ("sent", 1), ("asked",)]


async def test_chunks_sent_one_by_one_or_at_once_are_the_same_prompt() -> None:
    engine = MockEngine(FAST)
    async with MockServer(engine) as server, RealtimeAdapter(server.url) as adapter:
        await adapter.probe()
        request, texts = adapter.prepare(PROMPT), []
        for one_by_one in (False, True):
            session, told = begin(request, salt=f"{one_by_one}")
            for index in range(2):
                session.send_chunk(index)
                if one_by_one:
                    await told.until("prefilled", index)
            session.ask()
            await told.end()
            texts.append(told.text)
    at_once, one_by_one_run = engine.runs.values()
    assert sum(at_once, ()) == sum(one_by_one_run, ())
    assert texts[0] == texts[1]


async def test_a_session_that_is_closed_says_nothing_more() -> None:
    engine = MockEngine(Latencies(prefill_tokens_per_s=10.0))
    async with MockServer(engine) as server, RealtimeAdapter(server.url) as adapter:
        await adapter.probe()
        session, told = begin(adapter.prepare(PROMPT))
        session.send_chunk(0)
        await told.until("sent", 0)
        session.close()
        early, never = begin(adapter.prepare(PROMPT))
        early.close()
        async with asyncio.timeout(5):
            while engine.open_runs:
                await asyncio.sleep(0.01)
    assert told.calls == [("sent", 0)]
    assert never.calls == []


async def test_a_connection_that_takes_too_long() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with RealtimeAdapter(url, connect_timeout_s=0.1) as adapter:
            error = await _failure(adapter.prepare(PROMPT))
    assert error.error_type == "connect_timeout"


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
        error = await _failure(adapter.prepare(prompt))
    assert error.error_type == "rejected"
    assert "context_length_exceeded" in str(error)


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
        error = await _failure(adapter.prepare(PROMPT))
    assert error.error_type == "disconnected"
    assert "code 1000" in str(error)


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
            session, told = begin(adapter.prepare(Prompt("Answer.", chunks, "Question?", 1)))
            for index in range(len(chunks)):
                session.send_chunk(index)
                await told.until("prefilled", index)
            session.ask()
            await told.end()
            answers.append(told)
    streamed, at_once = answers
    assert streamed.text == at_once.text
    used, fresh = streamed.calls[-1][1], at_once.calls[-1][1]
    assert isinstance(used, Usage)
    assert isinstance(fresh, Usage)
    assert used.prompt_tokens == fresh.prompt_tokens
    assert fresh.invalidated_tokens == 0
    assert (used.invalidated_tokens or 0) > 0


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
