import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest
from aiohttp.test_utils import TestServer

from s2l.collectors.demo_site.latency import LatencyProfile
from s2l.collectors.demo_site.pages import build_pages
from s2l.collectors.demo_site.process import DemoSite, DemoSiteError, PortTaken
from s2l.collectors.demo_site.site import LogLine, Site


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def test_pages_search_and_index_are_served(
    demo_site: Any, http: aiohttp.ClientSession
) -> None:
    async with http.get(f"{demo_site.url}/") as index:
        assert 'href="/textwrap.wrap.html"' in await index.text()
    async with http.get(f"{demo_site.url}/textwrap.wrap.html") as page:
        assert page.content_type == "text/html"
        assert "width=70" in await page.text()
    query = {"q": "What is the default width of textwrap.wrap?", "n": "3"}
    async with http.get(f"{demo_site.url}/search", params=query) as answer:
        found = await answer.json()
    assert found["query"] == query["q"]
    assert len(found["hits"]) == 3
    assert found["hits"][0]["url"] == f"{demo_site.url}/textwrap.wrap.html"
    assert found["hits"][0]["title"].startswith("textwrap.wrap")


@pytest.mark.parametrize(
    ("path", "status"),
    [("/antigravity.html", 404), ("/json", 404), ("/../etc/passwd", 404), ("/search?q=x&n=0", 400)],
)
async def test_nothing_else_is_served(
    demo_site: Any, http: aiohttp.ClientSession, path: str, status: int
) -> None:
    async with http.get(demo_site.url + path) as answer:
        assert answer.status == status


async def test_each_piece_is_sent_when_it_is_due(http: aiohttp.ClientSession) -> None:
    profile, lines = LatencyProfile(seed=3, speed=20), list[LogLine]()
    site = Site(build_pages(["textwrap"]), profile, lines.append)
    async with (
        TestServer(site.app()) as server,
        http.get(server.make_url("/textwrap.wrap.html")) as answer,
    ):
        await answer.read()
        read_ns = time.monotonic_ns()
    due = profile.page("/textwrap.wrap.html")
    [line] = lines
    assert line["target"] == "/textwrap.wrap.html"
    received_ns = int(line["received_ns"])
    first_s = (int(line["first_byte_ns"]) - received_ns) / 1e9
    last_s = (int(line["last_byte_ns"]) - received_ns) / 1e9
    assert due.first_byte_s <= first_s < due.first_byte_s + 0.5
    assert due.total_s <= last_s < due.total_s + 0.5
    assert 0 < read_ns - int(line["last_byte_ns"]) < 500e6


async def test_a_share_of_pages_can_fail(http: aiohttp.ClientSession) -> None:
    profile = LatencyProfile(speed=1000, failure_rate=1)
    site = Site(build_pages(["textwrap"]), profile, lambda line: None)
    async with TestServer(site.app()) as server:
        async with http.get(server.make_url("/textwrap.html")) as page:
            assert page.status == 503
        async with http.get(server.make_url("/search?q=wrap")) as found:
            assert found.status == 200


async def test_the_child_starts_and_stops() -> None:
    before = set(psutil.Process().children())
    site = DemoSite(seed=5, speed=50, modules=["json"])
    with pytest.raises(DemoSiteError, match="not running"):
        _ = site.url
    async with site:
        [child] = set(psutil.Process().children()) - before
        assert site.search_url == f"{site.url}/search?q={{query}}&n={{n}}"
    assert not child.is_running()
    await site.stop()


async def test_a_site_that_does_not_start_says_why_in_one_line() -> None:
    with pytest.raises(DemoSiteError, match=r"did not start: speed is -1\.0: give a number") as bad:
        await DemoSite(speed=-1).start()
    assert "\n" not in str(bad.value)


async def test_a_port_that_is_taken_is_named() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(PortTaken, match=r"[Aa]ddress already in use"),
    ):
        await DemoSite(port=taken.getsockname()[1]).start()


def test_the_child_ends_when_its_parent_is_killed() -> None:
    script = Path(__file__).with_name("start_demo_site.py")
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline().startswith(b"http://127.0.0.1:")
        [child] = psutil.Process(parent.pid).children()
        os.kill(parent.pid, signal.SIGKILL)
    psutil.wait_procs([child], timeout=10)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_the_site_ends_at_sigterm() -> None:
    command = [sys.executable, "-P", "-m", "s2l.collectors.demo_site", "--modules", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as site:
        assert site.stdout is not None
        assert json.loads(site.stdout.readline())["url"].startswith("http://127.0.0.1:")
        site.terminate()
        assert site.wait(10) == 0
