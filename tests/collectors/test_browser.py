"""Pages that need JavaScript, in the system's Chromium, which has no network of its own."""

import asyncio
import dataclasses
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from s2l.collectors.browser.chromium import BrowserLimits, BrowserUnavailable, Chromium
from s2l.collectors.crawl_settings import CrawlSettings
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.fetcher import Fetcher
from s2l.collectors.page_fetching import PageFetching
from s2l.collectors.page_reader import BrowserMode, ReadPage
from s2l.collectors.politeness.manners import Manners

sys.path.insert(0, str(Path(__file__).parent))
from hostile_site import PARAGRAPH, HostileSite

_SETTINGS = CrawlSettings(
    manners=Manners.at_home(),
    allow_private=("127.0.0.1/32",),
    extract_workers=1,
    browser=BrowserMode.AUTO,
    allow_no_sandbox=True,
)


@pytest.fixture
async def site() -> AsyncIterator[HostileSite]:
    async with HostileSite() as running:
        yield running


async def _read(fetching: PageFetching, url: str) -> ReadPage:
    return await fetching.reader.read(url, 0, lambda: time.monotonic_ns() // 1000)


@pytest.mark.browser
async def test_text_that_needs_a_program_is_read_and_nothing_else_is_reached(
    site: HostileSite,
) -> None:
    reached: list[str] = []

    async def secret(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append((await reader.readline()).decode("latin-1"))
        writer.close()

    class Datagrams(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, sender: object) -> None:
            reached.append("a datagram")

    async with await asyncio.start_server(secret, "127.0.0.2", 0) as hidden:
        address = hidden.sockets[0].getsockname()
        site.secret = f"{address[0]}:{address[1]}"
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(Datagrams, local_addr=address)
        async with PageFetching(_SETTINGS) as fetching:
            read = await _read(fetching, f"{site.url}/app")
            assert read.found.text.endswith(f"refused 3. {PARAGRAPH.strip()}")
            assert read.page.rendered
            assert read.page.body_us > read.page.first_byte_us
            # A page that says all by itself is not opened.
            plain = await _read(fetching, f"{site.url}/page")
            assert not plain.page.rendered
        transport.close()
    assert reached == []
    assert sorted(site.requests) == ["/app", "/app.js", "/data.json", "/forbidden", "/page"]
    assert not any("sec-fetch-mode" in headers for headers in site.headers)


@pytest.mark.browser
async def test_always_opens_html_without_asking_for_it_twice(site: HostileSite) -> None:
    settings = dataclasses.replace(_SETTINGS, browser=BrowserMode.ALWAYS)
    async with PageFetching(settings) as fetching:
        read = await _read(fetching, f"{site.url}/to-page")
        assert (read.found.title, read.found.text) == ("Heron", PARAGRAPH.strip())
        assert read.page.meta(0)["rendered"] is True
        assert not (await _read(fetching, f"{site.url}/heron.pdf")).page.rendered
    assert site.requests == ["/to-page", "/page", "/heron.pdf"]


@pytest.mark.browser
async def test_a_program_without_end_is_given_up(site: HostileSite) -> None:
    limits = BrowserLimits(total_s=1.0)
    async with (
        Fetcher(allow_private=True) as fetcher,
        Chromium(fetcher, limits, allow_no_sandbox=True) as chromium,
    ):
        for path, ends in (("/busy-app", False), ("/page", True)):
            page = await fetcher.fetch(site.url + path, lambda: 0)
            if ends:
                rendered = await chromium.render(page, lambda: 0)
                assert PARAGRAPH.strip() in rendered.body.decode()
                continue
            with pytest.raises(Failure) as failed:
                await chromium.render(page, lambda: 0)
            assert failed.value.status == "browser_timeout"


async def test_a_missing_browser_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Fetcher() as fetcher:
        monkeypatch.setenv("PATH", "/nowhere")
        with pytest.raises(BrowserUnavailable, match="no Chromium on PATH: install it"):
            await Chromium(fetcher).__aenter__()


@pytest.mark.browser
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has no sandbox")
async def test_a_browser_without_a_sandbox_must_be_allowed() -> None:
    settings = dataclasses.replace(_SETTINGS, allow_no_sandbox=False)
    with pytest.raises(BrowserUnavailable, match="no sandbox as root"):
        await PageFetching(settings).__aenter__()
