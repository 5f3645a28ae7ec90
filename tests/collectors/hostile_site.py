"""A web server that does, path by path, what servers should not: real sockets, exact bytes."""

import asyncio
import gzip
import time
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from types import TracebackType
from typing import Self

import brotli

PARAGRAPH = "The heron stood in the shallow water and waited for the light to change. " * 3
PAGE = f"<html><head><title>Heron</title></head><body><main><p>{PARAGRAPH}</p></main></body></html>"
BOMB_BYTES = 100_000_000

Handler = Callable[["HostileSite", asyncio.StreamWriter, str], Awaitable[None]]
HANDLERS: dict[str, Handler] = {}


def handles(path: str) -> Callable[[Handler], Handler]:
    """Register what answers ``path``, and all below it."""

    def register(handler: Handler) -> Handler:
        HANDLERS[path] = handler
        return handler

    return register


class HostileSite:
    """An async context manager. ``robots`` is its robots.txt as (status line, body)."""

    def __init__(self) -> None:
        self.robots: tuple[str, bytes] = ("404 Not Found", b"")
        self.requests: list[str] = []
        """Targets, in the order of asking."""
        self.agents: set[str] = set()
        self.headers: list[dict[str, str]] = []
        self.started_s: list[float] = []
        self.last_byte_ns: dict[str, int] = {}
        """When the last byte of a target was handed to the socket."""
        self.most_at_once = 0
        self._at_once = 0
        self._open: set[asyncio.Task[None]] = set()
        self.port = 0
        self.secret = "127.0.0.2:9"
        """A host and port that pages try to reach."""
        self.away = ""
        """Where ``/away`` leads."""
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def forget(self) -> None:
        """Start afresh."""
        self.robots = ("404 Not Found", b"")
        self.requests, self.agents, self.started_s, self.most_at_once = [], set(), [], 0
        self.headers = []

    def asked_for(self, target: str) -> int:
        return self.requests.count(target)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            # Cancelled when the site closes; the stream's own callback takes that for an error.
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._answer(reader, writer):
                    pass
        finally:
            self._open.discard(task)
            writer.transport.abort() if task.cancelling() else writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        target = head[0].split(" ")[1]
        fields = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
        headers = {name.lower(): value for name, value in fields.items()}
        self.requests.append(target)
        self.started_s.append(time.monotonic())
        self.headers.append(headers)
        self.agents.add(headers.get("user-agent", ""))
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            if target == "/robots.txt":
                await send(writer, self.robots[1], status=self.robots[0], mime="text/plain")
            else:
                await self._handler(target)(self, writer, target)
            await writer.drain()
        finally:
            self._at_once -= 1
        return not writer.is_closing()

    def _handler(self, target: str) -> Handler:
        path = target.partition("?")[0]
        while path and path not in HANDLERS:
            path = path.rpartition("/")[0]
        return HANDLERS.get(path, _missing)


async def send(
    writer: asyncio.StreamWriter,
    body: bytes,
    *more: str,
    status: str = "200 OK",
    mime: str = "text/html",
) -> None:
    """A whole, well-formed answer; ``more`` are header lines."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *more]
    if mime:
        lines.append(f"Content-Type: {mime}")
    writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)


def _body(body: bytes, *more: str, mime: str = "text/html", status: str = "200 OK") -> Handler:
    async def handler(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
        await send(writer, body, *more, mime=mime, status=status)

    return handler


def _page(body: str) -> Handler:
    return _body(body.encode())


def _to(location: str, status: str = "302 Found") -> Handler:
    return _body(b"", f"Location: {location}", status=status)


def _refresh(location: str) -> Handler:
    return _page(
        f'<html><head><meta http-equiv="refresh" content="0; url={location}"></head></html>'
    )


_missing = _body(b"no such page", status="404 Not Found")

for _path, _handler in {
    "/page": _page(PAGE),
    "/to-page": _to("/page", "301 Moved Permanently"),
    "/redirect-loop": _to("/redirect-loop"),
    "/to-metadata": _to("http://169.254.169.254/latest/meta-data/"),
    "/to-ipv6-loopback": _to("http://[::1]:80/"),
    "/to-private": _to("http://10.0.0.1/"),
    "/to-file": _to("file:///etc/passwd"),
    "/to-ftp": _to("ftp://example.org/file"),
    "/to-script": _to("javascript:alert(1)"),
    "/to-nowhere": _to("http://"),
    "/moved-then-forbidden": _to("/forbidden", "301 Moved Permanently"),
    "/forbidden": _body(b"no", status="403 Forbidden"),
    "/busy": _body(b"", status="503 Service Unavailable"),
    "/empty": _page(""),
    "/pixel": _page("<html><body><img src='x.png'></body></html>"),
    "/refresh": _refresh("/page"),
    "/refresh-loop": _refresh("/refresh-loop"),
    "/refresh-file": _refresh("file:///etc/passwd"),
    "/refresh-private": _refresh("http://169.254.169.254/"),
    "/badzip": _body(b"not gzip", "Content-Encoding: gzip"),
    "/cut-zip": _body(gzip.compress(PAGE.encode())[:-20], "Content-Encoding: gzip"),
    "/strange-zip": _body(PAGE.encode(), "Content-Encoding: snake"),
    "/gzip": _body(gzip.compress(PAGE.encode()), "Content-Encoding: gzip"),
    "/gzip-members": _body(
        gzip.compress(PAGE[:99].encode()) + gzip.compress(PAGE[99:].encode()),
        "Content-Encoding: gzip",
    ),
    "/deflate": _body(zlib.compress(PAGE.encode()), "Content-Encoding: deflate"),
    "/bare-deflate": _body(zlib.compress(PAGE.encode())[2:-4], "Content-Encoding: deflate"),
    "/brotli": _body(brotli.compress(PAGE.encode()), "Content-Encoding: br"),
    "/image": _body(b"\x89PNG", mime="image/png"),
    "/big-header": _body(b"x", f"X-Big: {'a' * 5_000_000}"),
    "/many-headers": _body(b"x", *(f"X-{i}: a" for i in range(5000))),
    "/latin-as-utf8": _body(
        PAGE.replace("light", "Größe").encode("latin-1"), mime="text/html; charset=utf-8"
    ),
    "/utf8-as-latin": _body(
        PAGE.replace("light", "Größe").encode(), mime="text/html; charset=iso-8859-1"
    ),
    "/stray-bytes": _body(
        (PARAGRAPH * 2 + " a stray ").encode() + b"\x80 and \xff" + ". Größe".encode(),
        mime="text/plain; charset=utf-8",
    ),
    "/no-such-charset": _body(PAGE.encode(), mime="text/html; charset=x-none"),
    "/bytes-in-header": _body(PAGE.encode(), "X-Name: \xff\xfe", 'ETag: "\xff"'),
    "/reason": _body(b"", status="404 \x1b[31mN\xf6"),
    "/titles": _page(
        PAGE.replace("Heron", "&lt;/script>\x1b[31mRed\x1b[0m&lt;script>\x00alert(1)\x07")
    ),
    "/surrogate.json": _body(
        b'{"title": "T\\ud800", "text": "lone \\udfff, pair \\ud83d\\ude00"}',
        mime="application/json",
    ),
    "/surrogate": _page(PAGE.replace("Heron", "He&#xD800;ron").replace("light", "&#56320;")),
    "/data.json": _body(b'{"name": "Heron", "legs": 2, "eats": ["fish"]}', mime="application/json"),
    "/bad.json": _body(b"{", mime="application/json"),
    "/text": _body(b"a < b\n", mime="text/plain"),
    "/deep": _page("<div>" * 50_000 + PARAGRAPH),
}.items():
    handles(_path)(_handler)


@handles("/gzip-bomb")
async def _gzip_bomb(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    await send(writer, gzip_bomb(), "Content-Encoding: gzip")


@handles("/brotli-bomb")
async def _brotli_bomb(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    await send(writer, brotli_bomb(), "Content-Encoding: br")


@cache
def gzip_bomb() -> bytes:
    squeeze = zlib.compressobj(1, wbits=31)
    pieces = [squeeze.compress(bytes(1_000_000)) for _ in range(BOMB_BYTES // 1_000_000)]
    return b"".join(pieces) + squeeze.flush()


@cache
def brotli_bomb() -> bytes:
    squeeze = brotli.Compressor(quality=1)
    pieces = [squeeze.process(bytes(1_000_000)) for _ in range(BOMB_BYTES // 1_000_000)]
    return b"".join(pieces) + squeeze.finish()


@handles("/slow-headers")
async def _slow_headers(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    await _drip(writer, b"X-Slow: a\r\n")


@handles("/slow-body")
async def _slow_body(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n")
    await _drip(writer, b"x")


async def _drip(writer: asyncio.StreamWriter, drop: bytes) -> None:
    while not writer.is_closing():
        writer.write(drop)
        await writer.drain()
        await asyncio.sleep(0.05)


@handles("/silent")
async def _silent(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    await writer.wait_closed()


@handles("/stalled-body")
async def _stalled_body(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100\r\n\r\n<p>")
    await writer.wait_closed()


@handles("/endless-body")
async def _endless_body(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"<p>more " * 8192)
        await writer.drain()


@handles("/endless-zip")
async def _endless_zip(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    """Compressed blocks without anything in them, for ever."""
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n"
        b"Connection: close\r\n\r\n"
    )
    squeeze = zlib.compressobj(wbits=31)
    writer.write(squeeze.compress(b"x") + squeeze.flush(zlib.Z_SYNC_FLUSH))
    while not writer.is_closing():
        writer.write(b"\x00\x00\x00\xff\xff" * 16_384)
        await writer.drain()


@handles("/reset")
async def _reset(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\n<p>cut"
    )
    await writer.drain()
    await asyncio.sleep(0.05)
    writer.transport.abort()


@handles("/too-short")
async def _too_short(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    """Less than Content-Length says."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9999\r\n\r\n")
    writer.write(PAGE.encode())
    await writer.drain()
    writer.close()


@handles("/too-long")
async def _too_long(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    """More than Content-Length says."""
    size = len(PAGE.encode())
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {size}\r\n\r\n"
    writer.write(head.encode() + PAGE.encode() + b"HTTP/1.1 200 OK\r\nsmuggled: 1\r\n\r\n")


@handles("/huge-length")
async def _huge_length(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99999999999\r\n\r\n"
    )


@handles("/not-http")
async def _not_http(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    writer.write(b"220 mail.example.org ESMTP\r\n\r\n")


@handles("/calendar")
async def _calendar(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    """A page for every day, each with a link to the next."""
    day = int(target.rpartition("/")[2]) if target != "/calendar" else 0
    link = f'<a href="/calendar/{day + 1}">the day after</a>'
    await send(writer, PAGE.replace("</main>", f"<p>Day {day}. {link}</p></main>").encode())


@handles("/links")
async def _links(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    await send(writer, many_links())


@cache
def many_links() -> bytes:
    """A page of 100,000 links."""
    links = "".join(f'<a href="/page?{i}">{i}</a> ' for i in range(100_000))
    return PAGE.replace("</main>", f"</main><p>{links}</p>").encode()


@handles("/hang")
async def _hang(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    """A page that takes its reader many seconds."""
    await send(writer, many_links())


@handles("/heron.pdf")
async def _pdf(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    text = b"BT /F1 12 Tf 72 700 Td (The heron waits.) Tj ET"
    await send(writer, pdf(zlib.compress(text)), mime="application/pdf")


@handles("/bomb.pdf")
async def _pdf_bomb(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    await send(writer, pdf_bomb(), mime="application/pdf")


@handles("/broken.pdf")
async def _broken_pdf(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    await send(writer, b"%PDF-1.7 and no more", mime="application/pdf")


@cache
def pdf_bomb() -> bytes:
    return pdf(zlib.compress(bytes(BOMB_BYTES), 1))


def build_all() -> None:
    """Build what takes longer than an impatient client waits."""
    gzip_bomb(), brotli_bomb(), pdf_bomb(), many_links()


def pdf(stream: bytes) -> bytes:
    """A PDF of one page with this compressed content."""
    font = b"/Resources<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R" + font + b">>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Title(Heron)>>",
    ]
    out, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return out + b"trailer<</Size 6/Root 1 0 R/Info 5 0 R>>\nstartxref\n%d\n%%%%EOF" % start


@handles("/timed")
async def _timed(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    """A page in pieces, 20 to 120 ms after the request by its number; the last byte is logged."""
    number = int(target.rpartition("/")[2])
    size = 3 * len(PAGE.encode())
    writer.write(
        f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {size}\r\n\r\n".encode()
    )
    for piece in range(3):
        await asyncio.sleep((20 + number * 37 % 100) / 3000)
        if piece == 2:
            site.last_byte_ns[target] = time.monotonic_ns()
        writer.write(PAGE.encode())


@handles("/limited")
async def _limited(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    """Busy when asked first, with a Retry-After as the target says."""
    if site.asked_for(target) == 1:
        after = target.rpartition("/")[2]
        await send(writer, b"", f"Retry-After: {after}", status="429 Too Many Requests")
    else:
        await send(writer, PAGE.encode())


@handles("/held")
async def _held(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    """Busy at once, with a Retry-After as the last part of the target says."""
    after = target.rpartition("/")[2]
    await send(writer, b"", f"Retry-After: {after}", status="503 Service Unavailable")


@handles("/flaky")
async def _flaky(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    """Cut short twice, then fine."""
    if site.asked_for(target) <= 2:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\n<p>")
        writer.close()
    else:
        await send(writer, PAGE.encode())


@handles("/tagged")
async def _tagged(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    """A page that knows whether it has changed."""
    if site.headers[-1].get("if-none-match") == '"v1"':
        await send(writer, b"", status="304 Not Modified", mime="")
    else:
        await asyncio.sleep(0.1)
        await send(writer, PAGE.encode(), 'ETag: "v1"')


@handles("/away")
async def _away(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    await _to(site.away)(site, writer, target)


@handles("/slow")
async def _slow(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    """A page a tenth of a second after it was asked for."""
    await asyncio.sleep(0.1)
    await send(writer, PAGE.encode())


_APP = """<html><head><title>App</title>
<link rel="prefetch" href="http://SECRET/prefetch"><link rel="dns-prefetch" href="//SECRET">
<link rel="preconnect" href="http://SECRET"><link rel="stylesheet" href="http://SECRET/style.css">
</head><body><div id="root"></div><img src="http://SECRET/image"><iframe src="http://SECRET/frame">
</iframe><script src="/app.js"></script></body></html>"""
_APP_JS = """
const tried = [];
function attempt(name, f) { try { f(); tried.push(name); } catch (e) { tried.push(name + e); } }
attempt("socket", () => new WebSocket("ws://SECRET/socket"));
attempt("beacon", () => navigator.sendBeacon("http://SECRET/beacon", "x"));
attempt("events", () => new EventSource("http://SECRET/events"));
attempt("worker", () => navigator.serviceWorker.register("/worker.js"));
attempt("window", () => window.open("http://SECRET/window"));
attempt("rtc", () => {
  const peer = new RTCPeerConnection({iceServers: [{urls: "stun:SECRET"}]});
  peer.createDataChannel("x");
  peer.createOffer().then(offer => peer.setLocalDescription(offer));
});
async function main() {
  let refused = 0;
  for (const url of ["http://SECRET/fetch", "/forbidden", "file:///etc/passwd"]) {
    try { await fetch(url); } catch (error) { refused += 1; }
  }
  const answer = await (await fetch("/data.json")).json();
  document.getElementById("root").innerHTML =
    `<main><h1>${answer.name}</h1><p>refused ${refused}. WORDS</p></main>`;
}
main();
""".replace("WORDS", PARAGRAPH.strip())


@handles("/app")
async def _app(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    """A page whose text comes by JavaScript, which tries every way to ``site.secret``."""
    await send(writer, _APP.replace("SECRET", site.secret).encode())


@handles("/app.js")
async def _app_js(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    body = _APP_JS.replace("SECRET", site.secret).encode()
    await send(writer, body, mime="text/javascript")


@handles("/busy-app")
async def _busy_app(site: HostileSite, writer: asyncio.StreamWriter, target: str) -> None:
    """A program that never ends."""
    await send(writer, b"<title>x</title><body><div></div><script>for (;;) {}</script></body>")
