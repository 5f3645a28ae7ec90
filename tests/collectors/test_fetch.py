import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from s2l.collectors.failure import Failure
from s2l.collectors.fetch import Fetcher, FetchLimits
from s2l.collectors.search import (
    BadSearchUrl,
    SearchHit,
    SiteSearch,
    UnknownSearchProvider,
    search_provider,
)

_LIMITS = FetchLimits(total_s=0.5, max_bytes=1000, max_redirects=2)


def _ticks() -> Callable[[], int]:
    numbers = iter(range(1000))
    return lambda: next(numbers)


async def _never(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/html"})
    await response.prepare(request)
    await response.write(b"<p>start")
    await asyncio.Event().wait()
    return response


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/html"})
    await response.prepare(request)
    for _ in range(20):
        await response.write(b"x" * 100)
    return response


async def _broken(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/html", "Content-Length": "100"})
    await response.prepare(request)
    await response.write(b"<p>cut")
    assert request.transport is not None
    request.transport.close()
    return response


def _answer(body: bytes, mime: str, **headers: str) -> Callable[..., Awaitable[web.Response]]:
    async def handler(request: web.Request) -> web.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(body=body, headers={"Content-Type": mime, **named})

    return handler


async def _loop(request: web.Request) -> web.Response:
    raise web.HTTPFound("/loop")


async def _to_page(request: web.Request) -> web.Response:
    raise web.HTTPFound("/page")


async def _to_file(request: web.Request) -> web.Response:
    return web.Response(status=302, headers={"Location": "file:///etc/passwd"})


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    app = web.Application()
    bomb = gzip.compress(b"a" * 100_000)
    app.add_routes(
        [
            web.get("/page", _answer("<p>für".encode("latin-1"), "text/html; charset=latin-1")),
            web.get("/pdf", _answer(b"%PDF", "application/pdf")),
            web.get("/long", _answer(b"x" * 1001, "text/plain")),
            web.get("/most", _answer(b"x" * 1000, "text/plain")),
            web.get("/bomb", _answer(bomb, "text/html", Content_Encoding="gzip")),
            web.get("/badzip", _answer(b"not gzip", "text/html", Content_Encoding="gzip")),
            web.get("/never", _never),
            web.get("/endless", _endless),
            web.get("/broken", _broken),
            web.get("/loop", _loop),
            web.get("/moved", _to_page),
            web.get("/file", _to_file),
            web.get("/hits", _answer(_HITS, "application/json")),
            web.get("/nohits", _answer(b'{"hits": [{"title": "x"}]}', "application/json")),
        ]
    )
    async with TestServer(app) as running:
        yield running


_HITS = (
    b'{"query": "q", "hits": [{"url": "/page", "title": "A"}, {"url": "b.html"}, {"url": "/page"}]}'
)


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with Fetcher(_LIMITS) as running:
        yield running


async def test_a_page_comes_with_its_type_and_two_times(
    server: TestServer, fetcher: Fetcher
) -> None:
    page = await fetcher.fetch(str(server.make_url("/moved")), _ticks())
    assert page.url == str(server.make_url("/page"))
    assert (page.mime, page.charset) == ("text/html", "latin-1")
    assert page.body == "<p>für".encode("latin-1")
    assert (page.first_byte_us, page.body_us) == (0, 1)


async def test_a_body_of_just_the_limit_is_taken(server: TestServer, fetcher: Fetcher) -> None:
    page = await fetcher.fetch(str(server.make_url("/most")), _ticks())
    assert len(page.body) == 1000


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/missing", "http_404"),
        ("/pdf", "not_text"),
        ("/long", "too_large"),
        ("/endless", "too_large"),
        ("/bomb", "too_large"),
        ("/badzip", "broken"),
        ("/never", "timeout"),
        ("/broken", "broken"),
        ("/loop", "too_many_redirects"),
        ("/file", "bad_url"),
    ],
)
async def test_every_way_to_fail_has_its_code(
    server: TestServer, fetcher: Fetcher, path: str, status: str
) -> None:
    with pytest.raises(Failure) as failed:
        await fetcher.fetch(str(server.make_url(path)), _ticks())
    assert failed.value.status == status
    assert "\n" not in failed.value.detail


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("file:///etc/passwd", "bad_url"),
        ("http://[::1", "bad_url"),
        ("http://", "bad_url"),
        ("http://127.0.0.1:99999/", "bad_url"),
        ("http://no-such-host.invalid/", "dns"),
        (f"http://{'a' * 70}.invalid/", "bad_url"),
    ],
)
async def test_addresses_that_lead_nowhere(fetcher: Fetcher, url: str, status: str) -> None:
    with pytest.raises(Failure) as failed:
        await fetcher.fetch(url, _ticks())
    assert failed.value.status == status


async def test_a_closed_port_is_a_connect_failure(fetcher: Fetcher) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Failure) as failed:
        await fetcher.fetch(f"http://127.0.0.1:{port}/", _ticks())
    assert failed.value.status == "connect"


async def test_hits_are_resolved_and_each_comes_once(server: TestServer, fetcher: Fetcher) -> None:
    search = search_provider("site", fetcher, str(server.make_url("/hits")) + "?q={query}&n={n}")
    assert await search.search("a&b?", 7) == [
        SearchHit(str(server.make_url("/page")), "A", ""),
        SearchHit(str(server.make_url("/b.html")), "", ""),
    ]
    assert len(await search.search("x", 1)) == 1


@pytest.mark.parametrize(
    ("path", "status"),
    [("/nohits", "bad_answer"), ("/page", "not_text"), ("/missing", "http_404")],
)
async def test_a_search_that_does_not_answer_fails(
    server: TestServer, fetcher: Fetcher, path: str, status: str
) -> None:
    search = SiteSearch(fetcher, str(server.make_url(path)) + "?q={query}")
    with pytest.raises(Failure) as failed:
        await search.search("x", 7)
    assert failed.value.status == status


def test_bad_settings_say_what_would_be_right() -> None:
    fetcher = Fetcher()
    with pytest.raises(UnknownSearchProvider, match="'bing': choose from site"):
        search_provider("bing", fetcher, "http://x/?q={query}")
    with pytest.raises(BadSearchUrl, match=r"give an http\(s\) address with \{query\}"):
        search_provider("site", fetcher, "http://x/")
    with pytest.raises(BadSearchUrl):
        search_provider("site", fetcher, "ftp://x/{query}")
