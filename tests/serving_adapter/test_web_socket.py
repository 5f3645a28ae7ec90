"""The lean WebSocket client against bytes on a real socket, cut anywhere."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.server import ServerConnection, serve

from s2l.serving_adapter.base import ServingError
from s2l.serving_adapter.realtime.web_socket import ClientSocket, Endpoint, text_frame

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Heard:
    """A socket's listener that keeps what it was told."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.opened = asyncio.Event()
        self.lost: asyncio.Future[ServingError] = asyncio.get_running_loop().create_future()

    def on_open(self) -> None:
        self.opened.set()

    def on_message(self, data: bytes) -> None:
        self.messages.append(data)

    def on_lost(self, error: ServingError) -> None:
        self.lost.set_result(error)


def frame(kind: int, data: bytes, *, final: bool = True) -> bytes:
    """A frame as servers send it."""
    size = len(data)
    if size < 126:
        length = bytes((size,))
    elif size < 65_536:
        length = b"\x7e" + size.to_bytes(2, "big")
    else:
        length = b"\x7f" + size.to_bytes(8, "big")
    return bytes(((0x80 if final else 0) | kind,)) + length + data


@asynccontextmanager
async def talking(talk: Talk) -> AsyncIterator[str]:
    """A server that talks after the handshake."""
    tasks: list[asyncio.Task[None]] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.current_task())  # type: ignore[arg-type]
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        key = head.split("Sec-WebSocket-Key: ")[1].split("\r\n")[0]
        accepted = base64.b64encode(hashlib.sha1(f"{key}{_GUID}".encode()).digest()).decode()
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Accept: " + accepted.encode() + b"\r\n\r\n"
        )
        await talk(reader, writer)
        await reader.read()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/realtime"
        await asyncio.gather(*tasks)


async def _hear(talk: Talk) -> Heard:
    async with talking(talk) as url:
        heard = Heard()
        ClientSocket(Endpoint(url), heard, connect_timeout_s=5)
        await asyncio.wait_for(asyncio.shield(heard.lost), 10)
    return heard


CLOSE = frame(0x8, (1000).to_bytes(2, "big"))


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1000, 1_000_000])
async def test_messages_of_all_sizes_cut_anywhere(piece: int) -> None:
    sizes = (0, 1, 125, 126, 300) if piece < 100 else (0, 125, 126, 65_535, 65_536, 200_000)
    sent = [bytes([65 + n]) * size for n, size in enumerate(sizes)]
    stream = b"".join(frame(0x1, data) for data in sent) + CLOSE

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for first in range(0, len(stream), piece):
            writer.write(stream[first : first + piece])
            await writer.drain()
            await asyncio.sleep(0)

    heard = await _hear(talk)
    assert heard.messages == sent
    assert "code 1000" in str(heard.lost.result())


async def test_fragments_pings_and_binary_messages() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(0x1, "grü".encode()[:3], final=False))
        writer.write(frame(0x9, b"still there?") + frame(0xA, b""))
        writer.write(frame(0x0, "grü".encode()[3:], final=False) + frame(0x0, b"n"))
        head = await reader.readexactly(2 + 4)
        pong = bytes(
            b ^ head[2 + n % 4] for n, b in enumerate(await reader.readexactly(head[1] & 0x7F))
        )
        writer.write(frame(0x2, pong) + CLOSE)

    heard = await _hear(talk)
    assert heard.messages == ["grün".encode(), b"still there?"]


@pytest.mark.parametrize(
    ("sent", "kind", "reason"),
    [
        (b"\x81\x81....x", "protocol", "masked"),
        (frame(0x5, b""), "protocol", "unknown kind"),
        (b"\x81\x7f" + (2**40).to_bytes(8, "big"), "protocol", "a message of"),
        (frame(0x8, b""), "disconnected", "code 1005"),
    ],
)
async def test_what_is_not_to_be_sent(sent: bytes, kind: str, reason: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)

    error = (await _hear(talk)).lost.result()
    assert (error.error_type, reason in str(error)) == (kind, True)


async def test_a_connection_that_breaks_off() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(0x1, b"half")[:3])
        await writer.drain()
        writer.transport.abort()

    heard = await _hear(talk)
    assert heard.messages == []
    assert heard.lost.result().error_type == "disconnected"


@pytest.mark.parametrize(
    ("answer", "kind", "retry_after_s"),
    [
        (b"HTTP/1.1 429 Too Many\r\nRetry-After: 3\r\n\r\n", "rate_limited", 3.0),
        (b"HTTP/1.1 503 Busy\r\n\r\n", "server_error", None),
        (b"HTTP/1.1 401 No\r\n\r\n", "rejected", None),
        (b"HTTP/1.1 200 OK\r\n\r\n", "protocol", None),
        (b"HTTP/1.1 101 Yes\r\nSec-WebSocket-Accept: wrong\r\n\r\n", "protocol", None),
        (b"220 mail ESMTP\r\n", "protocol", None),
    ],
)
async def test_handshakes_that_fail(answer: bytes, kind: str, retry_after_s: float | None) -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await reader.read()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        heard = Heard()
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        ClientSocket(Endpoint(url), heard, connect_timeout_s=5)
        error = await asyncio.wait_for(heard.lost, 5)
    assert (error.error_type, error.retry_after_s) == (kind, retry_after_s)


@pytest.mark.parametrize("size", [0, 1, 3, 125, 126, 65_535, 65_536, 100_001])
async def test_another_library_reads_our_frames(size: int) -> None:
    received: asyncio.Queue[str | bytes] = asyncio.Queue()

    async def handle(connection: ServerConnection) -> None:
        async for message in connection:
            await received.put(message)

    async with serve(handle, "127.0.0.1", 0, max_size=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        heard = Heard()
        socket = ClientSocket(Endpoint(f"http://127.0.0.1:{port}/"), heard, connect_timeout_s=5)
        await asyncio.wait_for(heard.opened.wait(), 5)
        text = "ä" * (size // 2) + "x" * (size % 2)
        socket.write(text_frame(text.encode()))
        assert await asyncio.wait_for(received.get(), 5) == text
        socket.close()
