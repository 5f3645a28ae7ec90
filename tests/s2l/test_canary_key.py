"""A key in the environment reaches the service, and nothing else: no file, output or traceback."""

import asyncio
import os
import pickle
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from s2l.collectors.failure import Failure
from s2l.collectors.fetching.fetcher import Fetcher
from s2l.collectors.searching.api_client import ApiClient
from s2l.collectors.searching.base import MissingKey
from s2l.collectors.searching.registry import Access, SearchSettings, search_provider
from s2l.collectors.searching.secret import Secret
from s2l.workloads.query import Query

CANARY = "canary+KEY/7c1f9e"
SPELLINGS = {CANARY, quote(CANARY, safe=""), quote(CANARY)}
HEADERS = {"tavily": "Authorization", "brave": "X-Subscription-Token"}


def assert_unseen(text: str, where: str) -> None:
    assert text, where
    low = text.lower()
    assert [s for s in SPELLINGS if s.lower() in low] == [], where


def _sent(request: web.Request) -> str:
    """The key that came, as a careless service would log it."""
    key = request.headers.get("Authorization", "").removeprefix("Bearer ")
    return key or request.headers.get("X-Subscription-Token", "")


async def echo_in_hits(request: web.Request) -> web.Response:
    key = _sent(request)
    results = [
        {
            "url": f"http://127.0.0.1:9/?key={quote(key, safe='')}&{n}",
            "title": f"{key} {n}",
            "content": f"<{key}>",
            "description": key.upper(),
        }
        for n in range(2)
    ]
    return web.json_response({"results": results, "web": {"results": results}})


async def echo_as_text(request: web.Request) -> web.Response:
    return web.Response(text=f"your key {_sent(request)} is odd", content_type="application/json")


async def echo_as_a_wrong_type(request: web.Request) -> web.Response:
    return web.json_response({"results": _sent(request), "web": _sent(request)})


async def refused(request: web.Request) -> web.Response:
    return web.Response(status=401, reason=f"bad key {_sent(request)}", text=_sent(request))


async def moved(request: web.Request) -> web.Response:
    headers = {"Location": f"http://127.0.0.1:9/?key={_sent(request)}"}
    return web.Response(status=302, reason=f"see {_sent(request)}", headers=headers)


async def broken(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.write(f"HTTP/1.1 2x0 {_sent(request)}\r\n{_sent(request)}\r\n\r\n".encode())
    request.transport.close()
    return web.Response()


async def silent(request: web.Request) -> web.Response:
    await asyncio.Event().wait()
    return web.Response()


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
FAILING = {
    echo_as_text: "bad_answer",
    echo_as_a_wrong_type: "bad_answer",
    refused: "http_401",
    moved: "http_302",
    broken: "broken",
    silent: "timeout",
}


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Handler], Awaitable[str]]]:
    servers: list[TestServer] = []

    async def start(handler: Handler) -> str:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        servers.append(TestServer(app))
        await servers[-1].start_server()
        return str(servers[-1].make_url("/search"))

    yield start
    for server in servers:
        await server.close()


def _environ(name: str) -> dict[str, str]:
    return {f"{name.upper()}_API_KEY": CANARY}


async def _no_sleep(seconds: float) -> None:
    return


@pytest.mark.parametrize("name", ["tavily", "brave"])
@pytest.mark.parametrize(("handler", "status"), FAILING.items())
async def test_a_failing_provider_shows_no_key(
    serve: Any, name: str, handler: Handler, status: str
) -> None:
    settings = SearchSettings((await serve(handler),), environ=_environ(name))
    async with ApiClient(total_s=0.3, sleep=_no_sleep) as client, Fetcher() as pages:
        provider = search_provider(name, settings)(Access(pages, client))
        with pytest.raises(Failure) as failed:
            await provider.search(Query("q", "?"), 7)
    assert failed.value.status == status
    shown = traceback.TracebackException.from_exception(failed.value, capture_locals=True)
    assert_unseen("".join(shown.format()), "traceback with the values of all variables")
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    for thing in (settings, provider, vars(provider), client):
        assert_unseen(repr(thing), "repr")


async def test_a_closed_port_shows_no_key() -> None:
    settings = SearchSettings(("http://127.0.0.1:9/",), environ=_environ("tavily"))
    async with ApiClient(sleep=_no_sleep) as client, Fetcher() as pages:
        with pytest.raises(Failure, match="connect") as failed:
            await search_provider("tavily", settings)(Access(pages, client)).search(
                Query("q", "?"), 7
            )
    shown = traceback.TracebackException.from_exception(failed.value, capture_locals=True)
    assert_unseen("".join(shown.format()), "traceback")


def test_a_secret_can_only_be_revealed() -> None:
    key = Secret(CANARY)
    assert key.reveal() == CANARY
    for text in (repr(key), str(key), f"{key}", f"{key:>40}", "%s" % key, repr([key])):  # noqa: UP031
        assert_unseen(text, "a spelling of the secret")
    with pytest.raises(TypeError):
        pickle.dumps(key)
    assert key.redact(f"a {CANARY.lower()} b {quote(CANARY, safe='')}") == "a *** b ***"


def test_a_key_that_cannot_be_one_is_not_said_back() -> None:
    for value in (f"{CANARY}\n{CANARY}", f"{CANARY} x", CANARY * 100):
        with pytest.raises(MissingKey) as failed:
            Secret.from_environment("TAVILY_API_KEY", {"TAVILY_API_KEY": value})
        assert_unseen(str(failed.value), "message")


async def _crawl(folder: Path, name: str, url: str, *more: str) -> tuple[int, str]:
    questions = folder / "questions.jsonl"
    questions.write_text('{"query": "Who?"}\n{"query": "Why?"}\n')
    options = ["--search", name, "--search-url", url, "--queries", str(questions), *more]
    environment = {
        **os.environ,
        **{f"{service.upper()}_API_KEY": CANARY for service in HEADERS},
        "PYTHONASYNCIODEBUG": "1",
    }
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-X", "dev", "-m", "s2l", "collect", "crawl", *options],
        *["--out", str(folder / "trace")],
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


def _contents(folder: Path) -> str:
    """All that the files hold: their names, their bytes, and the rows of the compressed ones."""
    texts = []
    for file in sorted(folder.rglob("*")):
        texts.append(file.name)
        if file.suffix == ".parquet":
            texts.append(repr(pq.read_table(file).to_pylist()))
        if file.is_file():
            texts.append(file.read_bytes().decode("latin-1"))
    return "\n".join(texts)


@pytest.mark.parametrize(
    ("name", "handler"), [("tavily", echo_in_hits), ("brave", refused)], ids=["echo", "refused"]
)
async def test_a_whole_crawl_writes_no_key(
    serve: Any, tmp_path: Path, name: str, handler: Handler
) -> None:
    asked: list[str] = []

    async def watched(request: web.Request) -> web.StreamResponse:
        asked.append(_sent(request))
        return await handler(request)

    code, said = await _crawl(tmp_path, name, await serve(watched))
    assert (code, asked) == (1, [CANARY, CANARY]), said  # no page could be fetched
    assert_unseen(said, "output")
    written = _contents(tmp_path)
    assert f'"{name}"' in written
    assert "***" in written
    assert_unseen(written, "files")
