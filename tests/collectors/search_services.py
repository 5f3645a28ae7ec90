"""Servers on loopback that speak the documented JSON of search services, and keep what came."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer


@dataclass
class Service:
    """A search service. ``answers`` are given one after the other, the last one ever after."""

    answers: list[Callable[[web.Request], Awaitable[web.StreamResponse]]] = field(
        default_factory=list
    )
    asked: list[dict[str, Any]] = field(default_factory=list)
    address: str = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        self.asked.append(
            {
                "method": request.method,
                "path": request.path,
                "query": dict(request.query),
                "headers": dict(request.headers),
                "body": body,
            }
        )
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        return await answer(request)


@asynccontextmanager
async def running(*answers: Any) -> AsyncIterator[Service]:
    """A service that gives these answers: JSON values, responses, or functions of a request."""
    service = Service([_answer(one) for one in answers])
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", service.handle)
    async with TestServer(app) as server:
        service.address = str(server.make_url("/")).rstrip("/")
        yield service


def _answer(what: Any) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    if callable(what):
        return what  # type: ignore[no-any-return]

    async def give(request: web.Request) -> web.StreamResponse:
        if isinstance(what, tuple):
            status, headers = what
            return web.json_response({"error": "no"}, status=status, headers=headers)
        return web.json_response(what)

    return give


TAVILY: dict[str, Any] = {
    "query": "Who?",
    "follow_up_questions": None,
    "answer": None,
    "images": [],
    "results": [
        {
            "url": "https://en.wikipedia.org/wiki/A",
            "title": "A",
            "content": "About A.",
            "score": 0.98,
            "raw_content": None,
        },
        {"url": "https://b.example/page#part", "title": "B ", "content": None, "score": 0.5},
        {"url": "https://b.example/page", "title": "B again", "content": "x", "score": 0.4},
        {"url": "ftp://c.example/", "title": "C", "content": "x", "score": 0.3},
    ],
    "response_time": 1.09,
    "request_id": "123e4567",
}

BRAVE: dict[str, Any] = {
    "type": "search",
    "query": {"original": "Who?", "more_results_available": True},
    "mixed": {"type": "mixed", "main": [{"type": "web", "index": 0, "all": False}]},
    "web": {
        "type": "search",
        "family_friendly": True,
        "results": [
            {
                "type": "search_result",
                "title": "A",
                "url": "https://a.example/",
                "description": "About A.",
                "page_age": "2026-01-02T03:04:05",
                "language": "en",
                "meta_url": {"scheme": "https", "hostname": "a.example"},
            },
            {"type": "search_result", "title": "B", "url": "https://b.example/b"},
        ],
    },
}

SEARXNG: dict[str, Any] = {
    "query": "Who?",
    "number_of_results": 0,
    "results": [
        {
            "url": "https://a.example/",
            "title": "A",
            "content": "About A.",
            "engine": "wikipedia",
            "parsed_url": ["https", "a.example", "/", "", "", ""],
            "engines": ["wikipedia"],
            "positions": [1],
            "score": 1.0,
            "category": "general",
        },
        {"url": "https://b.example/b", "title": "B", "content": None},
    ],
    "answers": [],
    "corrections": [],
    "infoboxes": [],
    "suggestions": [],
    "unresponsive_engines": [["brave", "timeout"]],
}


FETCHED: web.AppKey[list[str]] = web.AppKey("fetched")
"""The paths that were asked for, in order."""


def pages(files: dict[str, Any], wait_s: float = 0.0) -> web.Application:
    """A site of files: HTML as text, other types as (type, bytes); ``.gz`` makes it gzip. Each
    comes after ``wait_s``."""
    app = web.Application()
    app[FETCHED] = []

    async def serve(request: web.Request) -> web.Response:
        app[FETCHED].append(request.path)
        await asyncio.sleep(wait_s)
        found = files.get(request.path)
        if found is None:
            raise web.HTTPNotFound
        kind, body = ("text/html", found) if isinstance(found, str) else found
        data = body.encode() if isinstance(body, str) else body
        if request.path.endswith(".gz"):
            data = gzip.compress(data)
        return web.Response(body=data, headers={"Content-Type": kind})

    app.router.add_get("/{path:.*}", serve)
    return app
