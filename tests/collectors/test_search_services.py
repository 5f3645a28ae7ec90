"""Tavily, Brave and SearXNG over real sockets, in their documented formats."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from s2l.collectors.failure import Failure
from s2l.collectors.fetching.fetcher import Fetcher
from s2l.collectors.searching.api_client import ApiClient, pause_asked_for_s
from s2l.collectors.searching.base import (
    BadSearchUrl,
    MissingKey,
    SearchHit,
    SearchProvider,
    UnknownSearchProvider,
)
from s2l.collectors.searching.registry import (
    SEARCH_PROVIDERS,
    Access,
    SearchSettings,
    search_provider,
)
from s2l.workloads.query import Query

sys.path.insert(0, str(Path(__file__).parent))
from search_services import BRAVE, SEARXNG, TAVILY, Service, running

KEYS = {"TAVILY_API_KEY": "tvly-secret-1", "BRAVE_API_KEY": "BSA-secret-2"}
QUERY = Query("q", "Who?")


class Sleeps:
    """Sleeps at once and remembers how long it was to be."""

    def __init__(self) -> None:
        self.all: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.all.append(round(seconds))


def provider(name: str, service: Service, client: ApiClient) -> SearchProvider:
    settings = SearchSettings((service.address + "/search",), environ=KEYS)
    return search_provider(name, settings)(Access(Fetcher(), client))


async def test_tavily() -> None:
    async with running(TAVILY) as service, ApiClient() as client:
        search = provider("tavily", service, client)
        assert await search.search(QUERY, 30) == [
            SearchHit("https://en.wikipedia.org/wiki/A", "A", "About A."),
            SearchHit("https://b.example/page", "B", ""),
        ]
        assert len(await search.search(QUERY, 1)) == 1
    asked = service.asked[0]
    assert (asked["method"], asked["path"]) == ("POST", "/search")
    assert asked["body"] == {"query": "Who?", "max_results": 20}
    assert asked["headers"]["Authorization"] == "Bearer tvly-secret-1"
    assert search.name == "tavily"


async def test_brave() -> None:
    async with running(BRAVE, {"type": "search"}) as service, ApiClient() as client:
        search = provider("brave", service, client)
        assert await search.search(Query("q", "why " * 80), 7) == [
            SearchHit("https://a.example/", "A", "About A."),
            SearchHit("https://b.example/b", "B", ""),
        ]
        assert await search.search(QUERY, 7) == []
    asked = service.asked[0]
    assert asked["method"] == "GET"
    assert asked["query"] == {
        "q": " ".join(["why"] * 50),
        "count": "7",
        "result_filter": "web",
        "text_decorations": "false",
    }
    assert asked["headers"]["X-Subscription-Token"] == "BSA-secret-2"
    assert "Authorization" not in asked["headers"]


async def test_searxng() -> None:
    async with running(SEARXNG, (403, {})) as service, ApiClient() as client:
        search = provider("searxng", service, client)
        assert await search.search(QUERY, 7) == [
            SearchHit("https://a.example/", "A", "About A."),
            SearchHit("https://b.example/b", "B", ""),
        ]
        assert (service.asked[0]["path"], service.asked[0]["query"]) == (
            "/search",
            {"q": "Who?", "format": "json"},
        )
        with pytest.raises(Failure, match=r"http_403: .*add json to search\.formats"):
            await search.search(QUERY, 7)


async def test_a_busy_service_is_asked_again_when_it_says() -> None:
    brave_limit = {"X-RateLimit-Remaining": "0, 1000", "X-RateLimit-Reset": "3, 1000000"}
    busy = [(429, brave_limit), (503, {"Retry-After": "7"}), (502, {})]
    sleeps = Sleeps()
    async with running(*busy, BRAVE) as service, ApiClient(sleep=sleeps) as client:
        hits = await provider("brave", service, client).search(QUERY, 7)
    assert (len(hits), len(service.asked)) == (2, 4)
    assert sleeps.all == [3, 7, 7]  # the last pause of 4 s lies within the one of 7 s before


async def test_a_service_that_stays_busy_fails_with_its_status() -> None:
    sleeps = Sleeps()
    async with running((429, {"Retry-After": "1"})) as service, ApiClient(sleep=sleeps) as client:
        with pytest.raises(Failure, match="http_429"):
            await provider("brave", service, client).search(QUERY, 7)
        assert len(service.asked) == 4
    quota = {"X-RateLimit-Remaining": "0, 0", "X-RateLimit-Reset": "1, 1000000"}
    async with running((429, quota)) as service, ApiClient(sleep=sleeps) as client:
        with pytest.raises(Failure, match="http_429"):
            await provider("brave", service, client).search(QUERY, 7)
        assert len(service.asked) == 1


async def _text(request: web.Request) -> web.Response:
    return web.Response(text="<p>not JSON", content_type="text/html")


async def _redirect(request: web.Request) -> web.Response:
    raise web.HTTPFound("http://elsewhere.invalid/")


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ((401, {}), "http_401"),
        ((432, {}), "http_432"),
        (_redirect, "http_302"),
        (_text, "bad_answer"),
        ({"results": "none"}, "bad_answer"),
        ({"other": []}, "bad_answer"),
        ({"results": [{"url": "https://a.example", "title": "x" * 5_000_000}]}, "too_large"),
    ],
)
async def test_an_answer_that_is_none_fails_at_once(answer: Any, status: str) -> None:
    async with running(answer) as service, ApiClient() as client:
        with pytest.raises(Failure) as failed:
            await provider("tavily", service, client).search(QUERY, 7)
        assert (failed.value.status, len(service.asked)) == (status, 1)


async def test_no_part_of_a_key_is_left_by_cutting_or_cleaning() -> None:
    key = KEYS["BRAVE_API_KEY"]
    broken_up = f"{key[:4]}\x00{key[4:]}"

    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=401, reason="x" * 190 + key)

    async def echo(request: web.Request) -> web.Response:
        tabbed = f"https://a.example/?k={key[:4]}\t{key[4:]}"
        return web.json_response(
            {"web": {"results": [{"url": tabbed, "title": broken_up, "description": broken_up}]}}
        )

    async with running(refuse, echo) as service, ApiClient() as client:
        search = provider("brave", service, client)
        with pytest.raises(Failure) as failed:
            await search.search(QUERY, 7)
        assert key[:4] not in failed.value.detail
        [hit] = await search.search(QUERY, 7)
    assert (hit.url, hit.title, hit.snippet) == ("https://a.example/?k=***", "***", "***")


@pytest.mark.parametrize(
    ("headers", "pause_s"),
    [
        ({}, None),
        ({"Retry-After": "2"}, 2),
        ({"Retry-After": "Fri, 02 Jan 2026 00:00:09 GMT"}, 9),
        ({"Retry-After": "Thu, 01 Jan 2026 00:00:00 GMT"}, 0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "Fri, 02 Jan 2026 00:00:09"}, 9),
        ({"Retry-After": "soon", "X-RateLimit-Reset": "3"}, 3),
        ({"X-RateLimit-Reset": "1, 50", "X-RateLimit-Remaining": "0, 3"}, 1),
        ({"X-RateLimit-Reset": "1, 50"}, 50),
        ({"X-RateLimit-Reset": "nan"}, None),
    ],
)
def test_how_long_a_service_asks_to_be_left_alone(
    headers: dict[str, str], pause_s: float | None
) -> None:
    assert pause_asked_for_s(headers, datetime(2026, 1, 2, tzinfo=UTC)) == pause_s


@pytest.mark.parametrize(
    ("name", "urls", "environ", "error", "says"),
    [
        ("bing", (), {}, UnknownSearchProvider, "'bing': choose from brave, links, searxng, site,"),
        ("tavily", (), {}, MissingKey, "set the environment variable TAVILY_API_KEY"),
        ("brave", (), {"BRAVE_API_KEY": " "}, MissingKey, "set the environment variable BRAVE"),
        ("brave", (), {"BRAVE_API_KEY": "a b\nc"}, MissingKey, "BRAVE_API_KEY cannot be a key"),
        ("searxng", (), {}, BadSearchUrl, "give exactly one, such as http://127"),
        ("searxng", ("localhost:8888",), {}, BadSearchUrl, "give an http"),
        ("searxng", ("http://me:pw@host",), {}, BadSearchUrl, "leave the user name and password"),
        ("site", ("http://x/",), {}, BadSearchUrl, "{query} is missing"),
        ("site", ("ftp://x/{query}",), {}, BadSearchUrl, "give an http"),
        ("site", ("http://x/{query}",) * 2, {}, BadSearchUrl, "give exactly one"),
        ("urls", ("http://x/",), {}, BadSearchUrl, "none is needed"),
        ("links", (), {}, ValueError, "no seed page"),
        ("links", ("x",), {}, BadSearchUrl, "seed page 'x': give an http"),
        ("sitemap", (), {}, BadSearchUrl, "give exactly one"),
    ],
)
def test_bad_settings_say_what_would_be_right(
    name: str, urls: tuple[str, ...], environ: dict[str, str], error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as failed:
        search_provider(name, SearchSettings(urls, environ=environ))
    message = str(failed.value)
    assert says in message
    assert "\n" not in message
    assert not any(value.strip() and value in message for value in environ.values())
    assert "pw" not in message


def test_every_provider_has_its_registered_name() -> None:
    urls = {"site": ("http://x/{query}",), "urls": (), "tavily": (), "brave": ()}
    access = Access(Fetcher(), ApiClient())
    for name in SEARCH_PROVIDERS:
        settings = SearchSettings(urls.get(name, ("http://x/",)), environ=KEYS)
        assert search_provider(name, settings)(access).name == name
