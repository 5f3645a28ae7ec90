"""Packing, pushing, pulling and protecting from the command line."""

import json
import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from s2l.cli import run
from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter

PAGE = "<html><head><title>A page</title></head><body><article><p>{}</p></article></body></html>"


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("S2L_CACHE", str(tmp_path / "cache"))


def write(path: Path, documents: list[Document], privacy: str = "full") -> None:
    """A trace with one query that brings these documents."""
    with TraceWriter.create(
        path,
        name="tiny",
        collector=Collector("crawl", "0", {}, 0),
        licence="CC0-1.0",
        privacy=privacy,
        created_utc="2026-01-01T00:00:00Z",
    ) as writer:
        writer.add_query(Query("q", "What?", (), 0))
        for seq, document in enumerate(documents):
            writer.add_document(document)
            ids = (document.doc_id,)
            writer.add_arrival(Arrival("q", seq, ArrivalKind.APPEND, 0, 10 * seq, ids))
        writer.add_arrival(Arrival("q", len(documents), ArrivalKind.END, 100, 100))
        writer.finish()


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    texts = ("one, ask me@example.com", "two")
    write(
        tmp_path / "tiny",
        [Document.of_text(url=f"http://a.org/{text[:3]}", title="", text=text) for text in texts],
    )
    return tmp_path / "tiny"


def test_pack_pull_list_and_rm(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["dataset", "pack", "a.tar", "tiny"]) == 0
    assert run(["dataset", "pack", "b.tar", "tiny", "--json"]) == 0
    assert Path("a.tar").read_bytes() == Path("b.tar").read_bytes()
    capsys.readouterr()
    assert run(["dataset", "pull", "a.tar", "--json"]) == 0
    pulled = json.loads(capsys.readouterr().out)
    assert list(Trace.open(Path(pulled["path"])).arrivals()) == list(Trace.open(trace).arrivals())
    assert run(["dataset", "list", "--json"]) == 0
    [entry] = json.loads(capsys.readouterr().out)["traces"]
    assert (entry["name"], entry["path"]) == ("tiny", pulled["path"])
    assert run(["dataset", "rm", "a.tar"]) == 0
    assert run(["dataset", "rm", "a.tar"]) == 2
    assert run(["dataset", "rm", "--all"]) == 0
    assert not Path(pulled["path"]).exists()


def test_push_to_a_folder(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["dataset", "push", "shared/tiny", "tiny", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["address"] == "shared/tiny"
    assert Path("shared/tiny/croissant.json").is_file()


def test_scrub_takedown_and_hide(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["dataset", "scrub", "tiny", "--out", "clean", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["found"] == {"email": {"documents.text": 1}}
    assert "example.com" not in said.out + said.err
    Path("list").write_text("a.org/two\n")
    assert run(["dataset", "takedown", "list", "clean", "--out", "fewer"]) == 0
    assert "Taken out at their owners' wish: 1 document," in capsys.readouterr().err
    assert run(["dataset", "hide", "fewer", "--privacy", "hashed", "--out", "hidden"]) == 0
    [document] = Trace.open(Path("hidden")).documents()
    assert document.text is None
    assert document.url.startswith("sha256:")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["pull", "hf:nothing"], "no dataset of the Hub"),
        (["pull", "http://example.org/a"], "must begin with https://"),
        (["pull", "none"], "none: no such trace folder or archive"),
        (["push", "hf:me/x", "none"], "none: no such trace folder"),
        (["pack", "x.tar", "none"], "none: no such trace folder"),
        (["rm"], "name addresses, or give --all"),
        (["rm", "hf:me/x"], "not in the cache"),
        (["scrub", "none", "--region", "XX"], "none: no such trace folder"),
        (["takedown", "none", "none"], "name a file of address patterns"),
        (["refetch", "none"], "none: no such trace folder"),
    ],
)
def test_one_line_for_a_mistake(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["dataset", *arguments]) in (1, 2)
    lines = [one for one in capsys.readouterr().err.splitlines() if one.startswith("s2l: ")]
    assert len(lines) == 1
    assert error in lines[0]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """A site of two pages."""
    folder = tmp_path / "site"
    folder.mkdir()
    for name in ("one", "two"):
        words = f"Page {name} says a little about itself. " * 20
        (folder / f"{name}.html").write_text(PAGE.format(words))
    handler = partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_refetch(site: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = ("Page one says a little about itself. " * 20).strip()
    write(
        Path("hidden"),
        [
            Document.of_text(url=f"{site}/one.html", title="A page", text=text),
            Document.of_text(url=f"{site}/two.html", title="A page", text="as it was"),
            Document.of_text(url=f"{site}/three.html", title="A page", text="gone"),
        ],
        privacy="urls",
    )
    assert run(["dataset", "refetch", "hidden", "--out", "x", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["failed"] == 3
    command = ["dataset", "refetch", "hidden", "--allow-private", "--out", "full", "--json"]
    assert run(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["same"], found["changed"], found["failed"]) == (1, 1, 1)
    [document] = Trace.open(Path("full")).documents()
    assert document.text == text
    assert [a.status for a in Trace.open(Path("full")).arrivals()] == [
        "ok",
        "not_refetched",
        "not_refetched",
        "ok",
    ]


def test_a_stranger_runs_nothing(trace: Path) -> None:
    assert run(["dataset", "pack", "evil", "tiny"]) == 0
    Path("evil/setup.py").write_text("open('executed', 'w')")
    os.symlink("/etc", "evil/arrivals/etc")
    assert run(["dataset", "pull", "evil"]) == 0
    assert not Path("executed").exists()
