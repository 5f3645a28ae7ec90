"""Attempts end and wait: whatever a server sends, it is not asked for ever."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from s2l.workloads.sharing.downloader import Downloader
from s2l.workloads.sharing.errors import TransferFailed

SIZE = 1_000
DATA = bytes(n % 251 for n in range(SIZE))


@dataclass
class Cutter:
    """A server that closes each connection after some bytes, the last number again and again."""

    cuts: list[int]
    ranges: bool = True
    url: str = ""
    requests: int = 0
    waits_s: list[float] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        sent = self.cuts[min(self.requests, len(self.cuts) - 1)]
        self.requests += 1
        wanted = request.headers.get("Range", "bytes=0-") if self.ranges else "bytes=0-"
        at = int(wanted.removeprefix("bytes=").removesuffix("-"))
        headers = {"Content-Range": f"bytes {at}-{SIZE - 1}/{SIZE}"} if at else {}
        answer = web.StreamResponse(status=206 if at else 200, headers=headers)
        answer.content_length = SIZE - at
        await answer.prepare(request)
        await answer.write(DATA[at : at + sent])
        if at + sent < SIZE:
            assert request.transport is not None
            request.transport.close()
        return answer

    async def fetch(self, file: Path) -> None:
        async def sleep(wait_s: float) -> None:
            self.waits_s.append(wait_s)
            await asyncio.sleep(0)

        async with Downloader(first_wait_s=1.0, sleep=sleep) as downloader:
            await downloader.file(self.url, file, SIZE, same=True)


@pytest.fixture
async def cutter() -> AsyncIterator[Cutter]:
    """A running one."""
    cutter = Cutter([SIZE])
    app = web.Application()
    app.router.add_get("/file", cutter.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    cutter.url = f"http://127.0.0.1:{runner.addresses[0][1]}/file"
    yield cutter
    await runner.cleanup()


async def test_a_byte_a_connection_is_not_asked_for_ever(cutter: Cutter, tmp_path: Path) -> None:
    cutter.cuts = [1]
    with pytest.raises(TransferFailed, match="what was transferred is kept, try again"):
        await cutter.fetch(tmp_path / "part")
    assert cutter.requests == 100
    assert cutter.waits_s == [1.0] * 99
    assert (tmp_path / "part").read_bytes() == DATA[:100]


async def test_going_back_and_forth_is_no_progress(cutter: Cutter, tmp_path: Path) -> None:
    cutter.cuts, cutter.ranges = [500, 600] * 50, False
    with pytest.raises(TransferFailed, match="what was transferred is kept, try again"):
        await cutter.fetch(tmp_path / "part")
    assert cutter.requests == 5
    assert cutter.waits_s == [1.0, 1.0, 2.0, 4.0]


async def test_waits_are_short_again_after_progress(cutter: Cutter, tmp_path: Path) -> None:
    cutter.cuts = [400, 0, 0, 300, 0, 0, 300]
    await cutter.fetch(tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == DATA
    assert cutter.waits_s == [1.0, 2.0, 4.0, 1.0, 2.0, 4.0]
