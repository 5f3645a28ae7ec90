"""Connections: reused or new, without a cap, repeated when stale, failing by type."""

import asyncio
import gc
import socket
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from scripted_server import (
    DONE,
    Heard,
    chunk,
    hear,
    probed,
    prompt_of,
    scripted,
    send_all,
    status_answer,
    stream,
    text_event,
)

from s2l.serving_adapter.base import ServingError
from s2l.serving_adapter.openai.adapter import OpenAiAdapter
from s2l.serving_adapter.openai.answer_reader import AnswerReader
from s2l.serving_adapter.openai.completion_session import CompletionSession
from s2l.serving_adapter.openai.connection import Connection
from s2l.serving_adapter.openai.connection_pool import OPEN_AT_ONCE, ConnectionPool
from s2l.serving_adapter.openai.early_prefill import EarlyPrefill
from s2l.serving_adapter.openai.event_stream import EventStream
from s2l.serving_adapter.openai.exchange import Exchange
from s2l.serving_adapter.openai.prepared_completion import PreparedCompletion

ANSWER = stream(text_event("Yes", "stop"), DONE)
PROMPT = prompt_of(chunk("A heron.\n"))


async def ask(adapter: OpenAiAdapter) -> Heard:
    """One request to its end."""
    heard = Heard()
    async with asyncio.timeout(10):
        session = adapter.prepare(PROMPT).start(heard, salt="s")
        send_all(session, 1)
        await heard.over.wait()
        session.close()
    return heard


async def test_connections_are_reused() -> None:
    async with scripted(ANSWER) as server, probed(server.url) as adapter:
        for _ in range(5):
            assert (await ask(adapter)).text == "Yes"
            await asyncio.sleep(0)
    assert len({request.connection for request in server.posts}) == 1


async def test_or_new_for_every_request() -> None:
    async with scripted(ANSWER) as server, probed(server.url, connections="new") as adapter:
        for _ in range(3):
            assert (await ask(adapter)).text == "Yes"
        numbers = [request.connection for request in server.posts]
        assert len(set(numbers)) == 3
        await server.until(lambda: set(numbers) <= set(server.lost))
    assert {request.headers["connection"] for request in server.posts} == {"close"}


async def test_a_connection_that_the_server_will_close_is_not_reused() -> None:
    closing = [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        + text_event("Yes", "stop"),
        None,
    ]
    async with scripted(closing) as server, probed(server.url) as adapter:
        assert [(await ask(adapter)).text for _ in range(2)] == ["Yes", "Yes"]
    assert len({request.connection for request in server.posts}) == 2


async def test_nothing_caps_the_connections() -> None:
    gate = asyncio.Event()
    async with scripted([gate, *ANSWER]) as server, probed(server.url) as adapter:
        asking = [asyncio.create_task(ask(adapter)) for _ in range(300)]
        await server.until(lambda: len(server.posts) == 300)
        gate.set()
        heard = await asyncio.gather(*asking)
    assert {h.text for h in heard} == {"Yes"}
    assert len({request.connection for request in server.posts}) == 300


async def test_connections_are_opened_ahead() -> None:
    gate = asyncio.Event()
    async with scripted([gate, *ANSWER]) as server, probed(server.url) as adapter:
        before = server.connections
        await adapter.ready(70)
        await adapter.ready(70)
        asking = [asyncio.create_task(ask(adapter)) for _ in range(70)]
        await server.until(lambda: len(server.posts) == 70)
        gate.set()
        heard = await asyncio.gather(*asking)
    assert {h.text for h in heard} == {"Yes"}
    assert server.connections == before + 70


async def test_none_are_opened_ahead_where_each_request_has_a_new_one() -> None:
    async with scripted(ANSWER) as server, probed(server.url, connections="new") as adapter:
        before = server.connections
        await adapter.ready(5)
        assert (await ask(adapter)).text == "Yes"
    assert server.connections == before + 1


async def test_opening_ahead_stops_where_nothing_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = 0
    opened = ConnectionPool._opened

    async def counted(pool: ConnectionPool) -> Connection:
        nonlocal attempts
        attempts += 1
        return await opened(pool)

    monkeypatch.setattr(ConnectionPool, "_opened", counted)
    async with OpenAiAdapter(f"http://127.0.0.1:{_closed_port()}") as adapter:
        await adapter.ready(1000)
    assert attempts == OPEN_AT_ONCE


async def test_a_connection_opened_ahead_that_the_server_has_closed_is_replaced() -> None:
    async with scripted([None], ANSWER) as server, probed(server.url) as adapter:
        await adapter.ready(1)
        heard = await ask(adapter)
    assert heard.of("asked", "resent", "text", "failed") == [
        ("asked",),
        ("resent", "disconnected"),
        ("asked",),
        ("text", "Yes", None),
    ]
    assert server.posts[0].connection != server.posts[1].connection


async def test_a_stale_connection_is_replaced_once_and_that_is_told() -> None:
    """The second request meets a connection that the server closes without a word."""
    async with scripted(ANSWER, [None], ANSWER) as server, probed(server.url) as adapter:
        assert (await ask(adapter)).text == "Yes"
        heard = await ask(adapter)
    assert heard.calls[1:] == [
        ("asked",),
        ("resent", "disconnected"),
        ("asked",),
        ("text", "Yes", None),
        ("finished", "stop"),
    ]
    assert [request.connection for request in server.posts[:2]] == [server.posts[0].connection] * 2
    assert server.posts[2].connection != server.posts[1].connection


async def test_a_connection_that_ends_while_it_is_held_is_replaced() -> None:
    async with scripted(ANSWER) as server, probed(server.url) as adapter:
        before = len(server.writers)
        heard = Heard()
        session = adapter.prepare(PROMPT).start(heard, salt="s")
        await server.until(lambda: len(server.writers) == before + 1)
        server.writers[-1].transport.abort()
        await server.until(lambda: before + 1 in server.lost)
        await asyncio.sleep(0.01)
        send_all(session, 1)
        async with asyncio.timeout(10):
            await heard.over.wait()
    assert heard.of("text", "failed") == [("text", "Yes", None)]
    assert server.posts[0].connection == before + 2


@pytest.mark.parametrize("connections", ["reuse", "new"])
async def test_a_session_can_be_closed_before_it_is_connected(connections: str) -> None:
    async with scripted(ANSWER) as server, probed(server.url, connections=connections) as adapter:
        prepared = adapter.prepare(PROMPT)
        silent = Heard()
        for close_at in range(3):
            session = prepared.start(silent, salt="s")
            if close_at > 0:
                session.send_chunk(0)
            if close_at > 1:
                session.ask()
            session.close()
        assert (await ask(adapter)).text == "Yes"
    assert silent.calls == []
    assert len(server.posts) == 1


async def test_a_new_connection_that_is_cut_is_a_failure() -> None:
    async with scripted([None]) as server:
        heard = await hear(server.url)
    assert heard.of("failed") == [("failed", "disconnected")]
    assert str(heard.error) == "the server closed the connection before it answered"
    assert len(server.posts) == 1


async def test_a_cut_in_the_middle_is_a_failure_even_on_a_kept_connection() -> None:
    cut = [*stream(text_event("He"), end=b""), None]
    async with scripted(ANSWER, cut) as server, probed(server.url) as adapter:
        await ask(adapter)
        heard = await ask(adapter)
    assert heard.of("text", "failed") == [("text", "He", None), ("failed", "disconnected")]
    assert str(heard.error) == "the server closed the connection in the middle of the answer"


async def test_a_closed_port_refuses() -> None:
    async with scripted(ANSWER) as server, probed(server.url) as adapter:
        prepared = adapter.prepare(PROMPT)
        async with OpenAiAdapter(f"http://127.0.0.1:{_closed_port()}") as nowhere:
            with pytest.raises(ServingError) as probing:
                await nowhere.probe()
            heard = Heard()
            other = _over(prepared, nowhere)
            send_all(other.start(heard, salt="s"), 1)
            async with asyncio.timeout(10):
                await heard.over.wait()
    assert probing.value.error_type == "refused"
    assert heard.calls == [("failed", "refused")]


def _over(prepared: PreparedCompletion, adapter: OpenAiAdapter) -> PreparedCompletion:
    """The prompt, to be sent to the server of another adapter, which cannot be probed."""
    assert adapter._pool is not None
    return replace(prepared, pool=adapter._pool)


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def test_a_connection_that_is_never_accepted_times_out() -> None:
    """A full backlog: the system answers nothing."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        waiting = [socket.socket() for _ in range(8)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        async with (
            scripted(ANSWER) as server,
            probed(server.url) as adapter,
            OpenAiAdapter(f"http://127.0.0.1:{address[1]}", connect_timeout_s=0.3) as slow,
        ):
            heard = Heard()
            send_all(_over(adapter.prepare(PROMPT), slow).start(heard, salt="s"), 1)
            async with asyncio.timeout(10):
                await heard.over.wait()
        for one in waiting:
            one.close()
    assert heard.calls == [("failed", "connect_timeout")]


async def test_an_unknown_host_is_a_failed_connection() -> None:
    async with OpenAiAdapter("http://no-such-host.invalid") as adapter:
        with pytest.raises(ServingError) as caught:
            await adapter.probe()
    assert caught.value.error_type == "connect"


async def test_tls() -> None:
    folder = Path(__file__).parent
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(folder / "localhost.pem")
    trusting = ssl.create_default_context(cafile=str(folder / "localhost.pem"))
    async with scripted(ANSWER, tls=server_side) as server:
        assert (await hear(server.url, tls=trusting)).text == "Yes"
        async with OpenAiAdapter(server.url) as adapter:
            with pytest.raises(ServingError) as caught:
                await adapter.probe()
    assert caught.value.error_type == "connect"
    assert "certificate" in str(caught.value)


async def test_closing_the_session_closes_the_connection() -> None:
    never = asyncio.Event()
    steps = [*stream(text_event("He"), end=b""), never]
    async with scripted(steps) as server, probed(server.url) as adapter:
        heard = Heard()
        session = adapter.prepare(PROMPT).start(heard, salt="s")
        send_all(session, 1)
        async with asyncio.timeout(10):
            while not heard.text:
                await asyncio.sleep(0.001)
        session.close()
        session.close()
        await server.until(lambda: server.posts[0].connection in server.lost)
    assert heard.of("finished", "failed") == []


async def test_a_server_that_is_busy_says_when_to_come_back() -> None:
    async with scripted([status_answer(429, "Retry-After: 0.01")]) as server:
        heard = await hear(server.url)
        assert len(server.posts) == 1
    assert heard.calls == [("sent", 0), ("asked",), ("failed", "rate_limited")]
    assert heard.error is not None
    assert heard.error.retry_after_s == 0.01


async def test_an_answer_that_breaks_off_fails() -> None:
    half = [*stream(text_event("He"), end=b""), None]
    async with scripted(half) as server:
        assert (await hear(server.url)).of("failed") == [("failed", "disconnected")]
        assert len(server.posts) == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("Retry-After: 7", 7.0),
        ("retry-after-ms: 250", 0.25),
        ("Retry-After: Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Retry-After: soon", None),
    ],
)
async def test_retry_after_is_a_number_or_a_date(header: str, seconds: float | None) -> None:
    async with scripted([status_answer(429, header)]) as server:
        heard = await hear(server.url)
    assert heard.error is not None
    assert heard.error.retry_after_s == seconds


PARTS = (Connection, CompletionSession, EarlyPrefill, Exchange, AnswerReader, EventStream, Heard)


def parts_alive() -> int:
    return sum(isinstance(part, PARTS) for part in gc.get_objects())


@pytest.mark.parametrize("way", ["wait", "stream", "cancel", "fail"])
async def test_nothing_of_a_request_stays_in_memory(way: str) -> None:
    """Measured runs turn the collector off: there must be no cycle that only it would free."""
    never = asyncio.Event()
    answers = {
        "wait": [ANSWER],
        "stream": [[never], ANSWER],
        "cancel": [[*stream(text_event("He"), end=b""), never]],
        "fail": [[*stream(text_event("He"), end=b""), None]],
    }[way]
    gc.collect()
    gc.disable()
    try:
        before = parts_alive()
        async with scripted(*answers) as server, probed(server.url) as adapter:
            heard = Heard()
            session = adapter.prepare(PROMPT).start(heard, salt="s")
            session.send_chunk(0)
            if way == "stream":
                await server.until(lambda: len(server.posts) == 1)
            session.ask()
            async with asyncio.timeout(10):
                while not (heard.text if way == "cancel" else heard.over.is_set()):
                    await asyncio.sleep(0.001)
            session.close()
            del session, heard
        await asyncio.sleep(0)
        assert parts_alive() == before
    finally:
        gc.enable()


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{_closed_port()}")
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{_closed_port()}")
    async with scripted(ANSWER) as server:
        assert (await hear(server.url)).text == "Yes"
