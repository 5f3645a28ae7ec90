"""The demo site as an HTTP application."""

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from aiohttp import web

from s2l.collectors.demo_site.latency import Latency, LatencyProfile
from s2l.collectors.demo_site.pages import Page, build_pages, index_html
from s2l.collectors.demo_site.search import PageSearch

_MOST_HITS: Final = 50
_DEFAULT_HITS: Final = 7

LogLine = dict[str, str | int]
"""``target``, ``status``, and the monotonic clock's nanoseconds at ``received_ns``,
``first_byte_ns`` and ``last_byte_ns`` (the moments before the bytes were handed to the socket)."""


class Site:
    """Serves pages (by path) and a search over them, as late as the profile says."""

    def __init__(
        self,
        pages: Mapping[str, Page],
        profile: LatencyProfile,
        log: Callable[[LogLine], None],
    ) -> None:
        self._profile = profile
        self._log = log
        self._pages = pages
        self._search = PageSearch(self._pages.values())
        self._index = index_html(self._pages.values()).encode()

    def app(self) -> web.Application:
        """The application; any other page is 404."""
        app = web.Application()
        app.router.add_get("/", self._get_index)
        app.router.add_get("/search", self._get_search)
        app.router.add_get("/{page}", self._get_page)
        return app

    async def _get_index(self, request: web.Request) -> web.Response:
        return web.Response(body=self._index, content_type="text/html", charset="utf-8")

    async def _get_page(self, request: web.Request) -> web.StreamResponse:
        page = self._pages.get(request.path)
        if page is None:
            raise web.HTTPNotFound(text="No such page; / lists them all.\n")
        latency = self._profile.page(request.path_qs)
        if latency.fails:
            return await self._send(request, latency, 503, "text/plain", b"Try again later.\n")
        return await self._send(request, latency, 200, "text/html", page.html.encode())

    async def _get_search(self, request: web.Request) -> web.StreamResponse:
        question = request.query.get("q", "")
        n = _hit_count(request.query.get("n"))
        hits = [
            {
                "url": str(request.url.origin()) + hit.path,
                "title": hit.title,
                "snippet": hit.snippet,
            }
            for hit in self._search.find(question, n)
        ]
        body = json.dumps({"query": question, "hits": hits}).encode()
        latency = self._profile.search(request.path_qs)
        return await self._send(request, latency, 200, "application/json", body)

    async def _send(
        self, request: web.Request, latency: Latency, status: int, mime: str, body: bytes
    ) -> web.StreamResponse:
        """Send at the moments that the latency says; log it unless the client went away."""
        response = web.StreamResponse(status=status, headers={"Cache-Control": "no-store"})
        response.content_type, response.charset = mime, "utf-8"
        response.content_length = len(body)
        with suppress(ConnectionResetError):
            times = await _send_in_pieces(request, response, latency, body)
            self._log({"target": request.path_qs, "status": status, **times})
        return response


async def _send_in_pieces(
    request: web.Request, response: web.StreamResponse, latency: Latency, body: bytes
) -> dict[str, int]:
    """Send headers and body piece by piece, each at its own moment after the request."""
    received_ns = time.monotonic_ns()
    await _sleep_until(received_ns, latency.first_byte_s)
    first_byte_ns = time.monotonic_ns()
    await response.prepare(request)
    size = -(-len(body) // len(latency.pieces_s))
    for i, at_s in enumerate(latency.pieces_s):
        await _sleep_until(received_ns, at_s)
        last_byte_ns = time.monotonic_ns()
        await response.write(body[i * size : (i + 1) * size])
    await response.write_eof()
    return {
        "received_ns": received_ns,
        "first_byte_ns": first_byte_ns,
        "last_byte_ns": last_byte_ns,
    }


def _hit_count(given: str | None) -> int:
    if given is None:
        return _DEFAULT_HITS
    if not given.isdecimal() or not 1 <= int(given) <= _MOST_HITS:
        raise web.HTTPBadRequest(text=f"n is {given!r}: give a number from 1 to {_MOST_HITS}.\n")
    return int(given)


async def _sleep_until(received_ns: int, after_s: float) -> None:
    await asyncio.sleep(after_s - (time.monotonic_ns() - received_ns) / 1e9)


async def serve(
    *,
    host: str,
    port: int,
    modules: Sequence[str],
    profile: LatencyProfile,
    log_path: Path | None,
    ready: Callable[[str], None],
    until: Callable[[], Awaitable[None]],
) -> None:
    """Serve until ``until`` returns; ``ready`` gets the site's address once it answers.

    Raises:
        OSError: the port is taken, or the log cannot be written.
    """
    # The port first: pages take seconds to build, and it may be taken.
    listener = socket.create_server((host, port), backlog=1024)
    lines = log_path.open("a", buffering=1) if log_path else None

    def log(line: LogLine) -> None:
        if lines:
            lines.write(json.dumps(line) + "\n")

    runner = web.AppRunner(
        Site(build_pages(modules), profile, log).app(), access_log=None, shutdown_timeout=0.5
    )
    try:
        await runner.setup()
        await web.SockSite(runner, listener).start()
        ready(f"http://{host}:{listener.getsockname()[1]}")
        await until()
    finally:
        await runner.cleanup()
        if lines:
            lines.close()
