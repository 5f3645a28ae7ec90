"""Serves folders of HTML from memory, and knows when it sent the last byte of each answer.

``python doc_server.py NAME=FOLDER...`` prints its address, then serves until standard input ends.
``?delay_s=1.5`` waits before the headers; ``/_sent`` gives the times, by path with query.
"""

import asyncio
import sys
import time
from pathlib import Path

from aiohttp import web

MOST_BYTES = 1_000_000


def pages_of(arguments: list[str]) -> dict[str, bytes]:
    """Every HTML page below the folders up to 1 MB, by its path on the site."""
    pages = {}
    for argument in arguments:
        name, _, folder = argument.partition("=")
        for file in sorted(Path(folder).resolve().rglob("*.html")):
            if file.is_file() and file.stat().st_size <= MOST_BYTES:
                pages[f"/{name}/{file.relative_to(Path(folder).resolve())}"] = file.read_bytes()
    return pages


class Site:
    def __init__(self, pages: dict[str, bytes]) -> None:
        self._pages = pages
        self._sent_ns: dict[str, int] = {}

    async def serve(self, request: web.Request) -> web.StreamResponse:
        body = self._pages.get(request.path)
        if body is None:
            raise web.HTTPNotFound
        if delay_s := float(request.query.get("delay_s", 0)):
            await asyncio.sleep(delay_s)
        response = web.Response(body=body, content_type="text/html", charset="utf-8")
        await response.prepare(request)
        await response.write_eof()
        self._sent_ns[request.path_qs] = time.monotonic_ns()
        return response

    async def list_pages(self, request: web.Request) -> web.Response:
        return web.json_response(list(self._pages))

    async def list_sent(self, request: web.Request) -> web.Response:
        return web.json_response(self._sent_ns)


async def main() -> None:
    site = Site(pages_of(sys.argv[1:]))
    app = web.Application()
    app.router.add_get("/_pages", site.list_pages)
    app.router.add_get("/_sent", site.list_sent)
    app.router.add_get("/{path:.*}", site.serve)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    listening = web.TCPSite(runner, "127.0.0.1", 0)
    await listening.start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
