"""``s2l dataset refetch`` asks sites as a crawl does, wherever they are."""

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from s2l.cli import run
from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter

_TEXT = "The heron stood in the shallow water and waited for the light to change."


class _Site(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, float]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: _Site

    def do_GET(self) -> None:
        self.server.asked.append((self.path, time.monotonic()))
        is_robots = self.path == "/robots.txt"
        body = b"User-agent: *\nDisallow: /private\n" if is_robots else _TEXT.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def site() -> Iterator[_Site]:
    with _Site() as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def _hidden_trace(path: Path, urls: list[str]) -> None:
    collector = Collector("crawl", "0")
    with TraceWriter.create(
        path, name="t", collector=collector, licence="CC0-1.0", privacy="urls"
    ) as writer:
        writer.add_query(Query("q", "What?", (), 0))
        for seq, url in enumerate(urls):
            document = Document.of_text(url=url, title="", text=_TEXT)
            writer.add_document(document)
            ids = (document.doc_id,)
            writer.add_arrival(Arrival("q", seq, ArrivalKind.APPEND, 0, seq, ids))
        writer.add_arrival(Arrival("q", len(urls), ArrivalKind.END, 0, 100))
        writer.finish()


def test_private_addresses_are_asked_with_the_manners_of_all_others(
    site: _Site, tmp_path: Path
) -> None:
    paths = ("/1", "/2", "/3", "/private")
    _hidden_trace(tmp_path / "hidden", [site.url + path for path in paths])
    out = tmp_path / "full"
    command = ["dataset", "refetch", str(tmp_path / "hidden"), "--out", str(out)]
    assert run([*command, "--allow-private"]) == 0
    asked = [path for path, _ in site.asked]
    assert (asked[0], sorted(asked[1:])) == ("/robots.txt", ["/1", "/2", "/3"])
    starts_s = [at_s for path, at_s in site.asked if path != "/robots.txt"]
    assert starts_s[-1] - starts_s[0] > 0.5  # two gaps of half a second, as they are by default
    statuses = [arrival.status for arrival in Trace.open(out).arrivals()]
    assert statuses == ["ok", "ok", "ok", "not_refetched", "ok"]
