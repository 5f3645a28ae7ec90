"""A raw TCP server that says to each request exactly what a test wrote down, and a listener."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from s2l.serving_adapter.base import (
    ContextChunk,
    ContextDocument,
    Prompt,
    ServingError,
    Session,
    Usage,
)
from s2l.serving_adapter.openai.adapter import OpenAiAdapter

Step = bytes | None | asyncio.Event
"""Bytes to write, None to close the connection, or an event to wait for."""

SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
MODELS = {"data": [{"id": "tiny", "object": "model"}]}


@dataclass(frozen=True)
class Request:
    """What the server was asked, on its how manieth connection."""

    connection: int
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Script:
    """Answers to POST requests in order, the last again and again; GET has its own."""

    answers: Sequence[Sequence[Step]]
    pages: dict[str, Any] = field(default_factory=lambda: {"/v1/models": MODELS})
    requests: list[Request] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    connections: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    url: str = ""

    @property
    def posts(self) -> list[Request]:
        return [request for request in self.requests if request.method == "POST"]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something that the server has seen is so."""
        async with asyncio.timeout(10), self.changed:
            await self.changed.wait_for(condition)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        await self._note(self.writers, writer)
        try:
            while (request := await _read_request(reader, number)) is not None:
                await self._note(self.requests, request)
                gone = asyncio.create_task(reader.read(1)) if request.method == "POST" else None
                if not await self._answer(request, writer, gone):
                    return
                if gone is not None:
                    gone.cancel()
                    await asyncio.gather(gone, return_exceptions=True)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            await self._note(self.lost, number)
            writer.transport.abort()

    async def _answer(
        self, request: Request, writer: asyncio.StreamWriter, gone: "asyncio.Task[bytes] | None"
    ) -> bool:
        if request.method == "GET":
            page = self.pages.get(request.path)
            writer.write(json_answer(page) if page is not None else status_answer(404))
            return True
        number = len(self.posts) - 1
        for step in self.answers[min(number, len(self.answers) - 1)]:
            if step is None:
                writer.close()
                return False
            if isinstance(step, asyncio.Event):
                assert gone is not None
                waiting = asyncio.create_task(step.wait())
                await asyncio.wait((waiting, gone), return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if gone.done():
                    return False
            else:
                writer.write(step)
                await writer.drain()
                await asyncio.sleep(0)
        return True

    async def _note(self, where: list[Any], what: Any) -> None:
        async with self.changed:
            where.append(what)
            self.changed.notify_all()


async def _read_request(reader: asyncio.StreamReader, number: int) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.decode().strip().split("\r\n")
    method, path, _ = first.split()
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(number, method, path, headers, json.loads(body) if body else None)


def http_chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(data: Any) -> bytes:
    """One server-sent event."""
    return b"data: %b\n\n" % (data if isinstance(data, bytes) else json.dumps(data).encode())


def text_event(text: str, finish: str | None = None, **more: Any) -> bytes:
    """A chat event with a piece of text."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return event({"choices": [choice], **more})


def usage_event(**counts: Any) -> bytes:
    """An event that only counts."""
    return event({"choices": [], "usage": counts})


DONE = event(b"[DONE]")
LAST = b"0\r\n\r\n"


def stream(*events: bytes, end: bytes = LAST) -> list[Step]:
    """A streamed answer, a chunk for each of the events."""
    return [SSE_HEAD, *map(http_chunk, events), end]


def json_answer(body: Any, status: str = "200 OK", *headers: str) -> bytes:
    """An answer in one piece."""
    data = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(data)}", "", ""]).encode() + data


def status_answer(status: int, *headers: str, body: bytes = b"") -> bytes:
    """A status and what belongs to it."""
    lines = [f"HTTP/1.1 {status} Some Reason", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def warmed(prompt_tokens: int) -> bytes:
    """The answer to a warm-up."""
    choice = {"index": 0, "message": {"content": "x"}, "finish_reason": "length"}
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 1}
    return json_answer({"choices": [choice], "usage": usage})


@asynccontextmanager
async def scripted(
    *answers: Sequence[Step], tls: ssl.SSLContext | None = None, pages: dict[str, Any] | None = None
) -> AsyncIterator[Script]:
    """A server that follows a script."""
    script = Script(answers)
    script.pages |= pages or {}
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0, ssl=tls)
    host, port = server.sockets[0].getsockname()
    script.url = f"https://localhost:{port}" if tls else f"http://{host}:{port}"
    try:
        yield script
    finally:
        server.close()


class Heard:
    """A listener that writes down what it hears."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.times_s: dict[str, float] = {}
        """When each kind of call came first."""
        self.over = asyncio.Event()
        self.usage: Usage | None = None
        self.error: ServingError | None = None

    def on_sent(self, index: int) -> None:
        self.calls.append(("sent", index))

    def on_asked(self) -> None:
        self.times_s.setdefault("asked", monotonic())
        self.calls.append(("asked",))

    def on_prefilled(self, index: int, tokens: int) -> None:
        self.calls.append(("prefilled", index, tokens))

    def on_text(self, text: str, tokens: int | None, *, reasoning: bool = False) -> None:
        self.times_s.setdefault("text", monotonic())
        self.calls.append(("reasoning" if reasoning else "text", text, tokens))

    def on_resent(self, error: ServingError) -> None:
        self.calls.append(("resent", error.error_type))

    def on_finished(self, usage: Usage, finish_reason: str) -> None:
        assert not self.over.is_set()
        self.usage = usage
        self.calls.append(("finished", finish_reason))
        self.over.set()

    def on_failed(self, error: ServingError) -> None:
        assert not self.over.is_set()
        self.error = error
        self.calls.append(("failed", error.error_type))
        self.over.set()

    @property
    def text(self) -> str:
        return "".join(call[1] for call in self.calls if call[0] == "text")

    def of(self, *names: str) -> list[tuple[Any, ...]]:
        """The calls of these names."""
        return [call for call in self.calls if call[0] in names]


def chunk(*texts: str, replaces: bool = False) -> ContextChunk:
    """A context chunk of documents with these texts."""
    return ContextChunk(tuple(ContextDocument(text, text) for text in texts), replaces)


def prompt_of(*chunks: ContextChunk, question: str = "Why?", max_tokens: int = 8) -> Prompt:
    """A prompt about the chunks."""
    return Prompt("Be brief.\n", chunks, question, max_tokens)


@asynccontextmanager
async def probed(url: str, **options: Any) -> AsyncIterator[OpenAiAdapter]:
    """An adapter that knows its server."""
    async with OpenAiAdapter(url, **options) as adapter:
        await adapter.probe()
        yield adapter


def send_all(session: Session, chunks: int) -> None:
    """All chunks and the question, as when waiting for the last."""
    for index in range(chunks):
        session.send_chunk(index)
    session.ask()


async def hear(url: str, prompt: Prompt | None = None, **options: Any) -> Heard:
    """One request that waits for its context, to its end."""
    prompt = prompt or prompt_of(chunk("A heron.\n"))
    heard = Heard()
    async with probed(url, **options) as adapter, asyncio.timeout(10):
        session = adapter.prepare(prompt).start(heard, salt="salt")
        send_all(session, len(prompt.chunks))
        await heard.over.wait()
        session.close()
    return heard


async def read(*steps: Step, **options: Any) -> Heard:
    """What a listener hears of one scripted answer."""
    async with scripted(steps) as script:
        return await hear(script.url, **options)
