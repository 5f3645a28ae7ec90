"""Taking down, hiding and fetching anew."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.errors import TraceError
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.scrubbing.changes import change_in_words, changes_of
from s2l.workloads.scrubbing.concealing import conceal
from s2l.workloads.scrubbing.errors import BadTakedown
from s2l.workloads.scrubbing.refetching import FetchedText, NotFetched, Refetch, refill
from s2l.workloads.scrubbing.scrubber import Scrubber, scrub
from s2l.workloads.scrubbing.takedown import TakedownList, take_down
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter
from s2l.workloads.validation import validate


@pytest.mark.parametrize(
    ("pattern", "url", "matches"),
    [
        ("example.org", "https://example.org/a", True),
        ("example.org", "https://www.Example.org:8080/", True),
        ("example.org", "https://notexample.org/", False),
        ("example.org", "https://other.net/example.org/", False),
        ("example.org/blog/", "https://example.org/blog/1", True),
        ("example.org/blog/", "https://example.org/shop/", False),
        ("https://example.org/*.html", "https://example.org/a/b.html", True),
        ("https://example.org/*.html", "https://example.org/a/b.txt", False),
        ("https://example.org/a[1]", "https://example.org/a[1]", True),
        ("https://e.org/1", f"sha256:{sha256(b'https://e.org/1').hexdigest()}", True),
    ],
)
def test_patterns(pattern: str, url: str, matches: bool) -> None:
    assert TakedownList((pattern,)).matcher().matches(url) is matches


def test_documents_are_dropped_and_the_card_says_so(
    trace_path: Path, tmp_path: Path, small: Any
) -> None:
    listed = tmp_path / "patterns"
    listed.write_text("# asked for in March\n\nhttp://site/0\nhttp://site/1\n")
    path = tmp_path / "less"
    manifest = take_down(Trace.open(trace_path), path, TakedownList.read(listed))
    assert validate(path) == []
    trace = Trace.open(path)
    assert [document.url for document in trace.documents()] == ["http://site/2"]
    seen = [(a.kind.value, a.status, a.doc_ids) for a in trace.arrivals() if a.query_id != "q-a"]
    assert seen == [
        ("replace", "ok", (small.C,)),
        ("replace", "ok", (small.C,)),
        ("end", "ok", ()),
        ("append", "taken_down", ()),
    ]
    assert changes_of(manifest) == [
        {"what": "takedown", "documents": 2, "arrivals": 2, "patterns": 2}
    ]
    assert "Taken out at their owners' wish: 2 documents" in change_in_words(
        changes_of(manifest)[0]
    )


@pytest.mark.parametrize("text", ["", "# nothing\n", "*\n", "a b\n"])
def test_lists_that_cannot_be_followed(text: str, tmp_path: Path) -> None:
    (tmp_path / "list").write_text(text)
    with pytest.raises(BadTakedown):
        TakedownList.read(tmp_path / "list")


def test_hashed_addresses_need_whole_patterns(trace_path: Path, tmp_path: Path) -> None:
    conceal(Trace.open(trace_path), tmp_path / "hashed", "hashed")
    hashed = Trace.open(tmp_path / "hashed")
    with pytest.raises(BadTakedown, match="must be a whole address"):
        take_down(hashed, tmp_path / "x", TakedownList(("site",)))
    take_down(hashed, tmp_path / "less", TakedownList(("http://site/0",)))
    less = Trace.open(tmp_path / "less")
    assert less.manifest.counts.documents == 2
    # Hashes stay what they are, however often the trace is written anew.
    take_down(less, tmp_path / "least", TakedownList(("http://site/1",)))
    assert Trace.open(tmp_path / "least").manifest.counts.documents == 1


def _named(path: Path) -> Trace:
    """A trace that names addresses wherever a capture does."""
    seed = "http://site/seed?api_key=sk-0123456789abcdef0123456789abcdef"
    options = {"search_urls": [seed], "hits": 7}
    hits = [{"url": "http://site/0", "title": "Page 0", "snippet": "alpha, they say"}]
    document = Document.of_text(url="http://site/0", title="Page 0", text="alpha")
    with TraceWriter.create(
        path, name="t", collector=Collector("crawl", "1", options, 0), licence="CC0-1.0"
    ) as writer:
        meta = {"urls": ["http://site/0"], "topic": "letters"}
        writer.add_query(Query("q", "What?", (), 0, meta))
        writer.add_document(document)
        writer.add_arrival(Arrival("q", 0, ArrivalKind.SEARCH, 0, 10, meta={"hits": hits}))
        writer.add_arrival(Arrival("q", 1, ArrivalKind.APPEND, 10, 20, (document.doc_id,)))
        writer.add_arrival(Arrival("q", 2, ArrivalKind.END, 20, 20))
        writer.finish()
    return Trace.open(path)


def _everything(path: Path) -> str:
    trace = Trace.open(path)
    rows = [*trace.queries(), *trace.documents(), *trace.arrivals()]
    return "".join(map(repr, rows)) + (path / "manifest.json").read_text()


def test_what_hides_texts_hides_what_a_search_quotes_of_them(tmp_path: Path) -> None:
    conceal(_named(tmp_path / "t"), tmp_path / "urls", "urls")
    shown = _everything(tmp_path / "urls")
    assert "http://site/0" in shown
    assert "alpha" not in shown


def test_what_hides_addresses_hides_all_of_them(tmp_path: Path) -> None:
    conceal(_named(tmp_path / "t"), tmp_path / "hashed", "hashed")
    trace = Trace.open(tmp_path / "hashed")
    assert "http://" not in _everything(tmp_path / "hashed")
    assert next(iter(trace.queries())).meta == {"urls": [], "topic": "letters"}
    options = trace.manifest.collector.options
    assert (options["search_urls"], options["hits"]) == ([], 7)


def test_a_takedown_reaches_queries_and_the_manifest(tmp_path: Path) -> None:
    take_down(_named(tmp_path / "t"), tmp_path / "less", TakedownList(("site",)))
    trace = Trace.open(tmp_path / "less")
    assert next(iter(trace.queries())).meta["urls"] == ["[taken down]"]
    assert trace.manifest.collector.options["search_urls"] == ["[taken down]"]


def test_scrubbing_reaches_the_manifest(tmp_path: Path) -> None:
    scrubber = Scrubber()
    scrub(_named(tmp_path / "t"), tmp_path / "clean", scrubber)
    options = Trace.open(tmp_path / "clean").manifest.collector.options
    assert options["search_urls"] == ["http://site/seed?api_key=REDACTED-token"]
    assert scrubber.report() == {"token": {"collector.options": 1}}


def test_hiding_is_one_way(trace_path: Path, tmp_path: Path) -> None:
    conceal(Trace.open(trace_path), tmp_path / "urls", "urls")
    assert validate(tmp_path / "urls") == []
    hidden = Trace.open(tmp_path / "urls")
    assert {document.text for document in hidden.documents()} == {None}
    assert list(hidden.arrivals()) == list(Trace.open(trace_path).arrivals())
    with pytest.raises(TraceError, match="what it hides is gone"):
        conceal(hidden, tmp_path / "full", "full")
    with pytest.raises(TraceError, match="is there already"):
        conceal(hidden, tmp_path / "urls", "hashed")


@pytest.mark.parametrize("keep", [False, True])
def test_texts_are_filled_in_where_the_hash_agrees(
    trace_path: Path, tmp_path: Path, keep: bool
) -> None:
    whole = Trace.open(trace_path)
    conceal(whole, tmp_path / "urls", "urls")
    texts = {document.url: document.text or "" for document in whole.documents()}
    now: dict[str, FetchedText | NotFetched] = {
        "http://site/0": FetchedText(texts["http://site/0"]),
        "http://site/1": FetchedText("other", "Other"),
        "http://site/2": NotFetched("http_404"),
    }

    def fetch(urls: Sequence[str]) -> list[FetchedText | NotFetched]:
        return [now[url] for url in urls]

    refetch = Refetch(fetch, keep_changed=keep)
    refill(Trace.open(tmp_path / "urls"), tmp_path / "full", refetch)
    assert validate(tmp_path / "full") == []
    assert dict(refetch.counts) == {"same": 1, "changed": 1, "failed": 1}
    assert dict(refetch.failures) == {"http_404": 1}
    found = {document.url: document for document in Trace.open(tmp_path / "full").documents()}
    assert found.pop("http://site/0") == next(iter(whole.documents()))
    assert [one.text for one in found.values()] == (["other"] if keep else [])
    assert [dict(one.meta) for one in found.values()] == (
        [{"refetched": "changed"}] if keep else []
    )


def test_all_the_same_gives_the_trace_back(trace_path: Path, tmp_path: Path) -> None:
    whole = Trace.open(trace_path)
    conceal(whole, tmp_path / "urls", "urls")
    texts = {document.url: FetchedText(document.text or "") for document in whole.documents()}
    refetch = Refetch(lambda urls: [texts[url] for url in urls])
    refill(Trace.open(tmp_path / "urls"), tmp_path / "full", refetch)
    full = Trace.open(tmp_path / "full")
    assert list(full.documents()) == list(whole.documents())
    assert list(full.arrivals()) == list(whole.arrivals())
    with pytest.raises(TraceError, match="hides no texts"):
        refill(full, tmp_path / "x", refetch)
