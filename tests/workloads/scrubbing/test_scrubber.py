"""What is found, what stays, and that nothing of it is told."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from s2l.workloads.document import Document
from s2l.workloads.errors import TraceError
from s2l.workloads.scrubbing.changes import change_in_words, changes_of
from s2l.workloads.scrubbing.scrubber import Scrubber, scrub
from s2l.workloads.trace import Trace
from s2l.workloads.validation import validate

GITHUB = "ghp_" + "a1B2" * 9
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\nx+/=\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("Write to jane.doe@example.com.", "Write to [email]."),
        ("Call +41 44 668 18 00 or (650) 253-0000!", "Call [phone] or [phone]!"),
        (f"export TOKEN={GITHUB}", "export TOKEN=[token]"),
        (f"id {AWS} in use", "id [key] in use"),
        (f"Bearer {JWT}", "Bearer [token]"),
        (f"before\n{PEM}\nafter", "before\n[key]\nafter"),
        ("see https://x.org/a?api_key=abcdef123 now", "see https://x.org/a?api_key=[token] now"),
    ],
)
def test_found_in_texts(text: str, scrubbed: str) -> None:
    assert Scrubber(["US"]).text(text, "place") == scrubbed


@pytest.mark.parametrize(
    "text",
    [
        "Python 3.11.2 of 2024-01-02 12:30:00, pi is 3.14159265358979",
        "@dataclass(frozen=True) x @ y, 192.168.100.200 and 12345678901234567890",
        "The token bucket algorithm needs a key function; sort(key=len)",
        "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    ],
)
def test_left_alone(text: str) -> None:
    scrubber = Scrubber(["US", "DE"])
    assert scrubber.text(text, "place") == text
    assert scrubber.report() == {}


@pytest.mark.parametrize(
    ("url", "scrubbed"),
    [
        ("https://user:pw@h.org/p?x=1", "https://REDACTED-key@h.org/p?x=1"),
        ("https://h.org/p?token=abc123&page=2", "https://h.org/p?token=REDACTED-token&page=2"),
        ("https://h.org/u/a.b%40example.com/x", "https://h.org/u/REDACTED-email/x"),
        ("https://h.org/?q=%2B41446681800", "https://h.org/?q=REDACTED-phone"),
        ("https://en.example.org/wiki/X?oldid=123456789", None),
        ("http://127.0.0.1:8000/get?key=random.html", None),
    ],
)
def test_addresses(url: str, scrubbed: str | None) -> None:
    assert Scrubber().url(url, "place") == (scrubbed or url)


def test_a_region_that_is_none() -> None:
    with pytest.raises(TraceError, match="two capital letters"):
        Scrubber(["Germany"])


def test_a_changed_text_has_a_new_hash_and_id() -> None:
    document = Document.of_text(url="http://s/1", title="t", text="ask a@example.com")
    scrubbed = Scrubber().document(document)
    assert scrubbed == Document.of_text(url="http://s/1", title="t", text="ask [email]")
    assert Scrubber().document(scrubbed) == scrubbed


@pytest.fixture
def leaky(tmp_path: Path, small: Any) -> Path:
    """A trace with something in every place."""
    path = tmp_path / "leaky"
    text = f"mail a@example.com, {GITHUB}"
    leaking = Document.of_text(url="http://s/?token=abcdef", title="by b@example.com", text=text)
    with small.create(path) as writer:
        for document in [*small.DOCUMENTS, leaking]:
            writer.add_document(document)
        for query in small.QUERIES:
            writer.add_query(replace(query, text=f"{query.text} c@example.com"))
        ids = (small.A, leaking.doc_id)
        for arrival in small.ARRIVALS:
            meta = {"hits": [{"url": leaking.url}]} if arrival.seq == 0 else {}
            shown = replace(arrival, meta=meta)
            writer.add_arrival(replace(shown, doc_ids=ids) if arrival.doc_ids else shown)
        writer.finish()
    return path


def test_a_whole_trace(leaky: Path, tmp_path: Path) -> None:
    scrubber = Scrubber()
    manifest = scrub(Trace.open(leaky), tmp_path / "clean", scrubber)
    assert validate(tmp_path / "clean") == []
    assert scrubber.report() == {
        "email": {"documents.text": 1, "documents.title": 1, "queries.text": 4},
        "token": {"arrivals.meta": 3, "documents.text": 1, "documents.url": 1},
    }
    [change] = changes_of(manifest)
    assert change["found"] == scrubber.report()
    assert "6 email, 5 token" in change_in_words(change)
    for file in (tmp_path / "clean").rglob("*"):
        data = file.read_bytes() if file.is_file() else b""
        assert GITHUB.encode() not in data
        assert b"example.com" not in data
    shown = json.dumps([scrubber.report(), change])
    assert "example.com" not in shown


def test_the_same_trace_gives_the_same_bytes(leaky: Path, tmp_path: Path) -> None:
    first = scrub(Trace.open(leaky), tmp_path / "a", Scrubber())
    second = scrub(Trace.open(leaky), tmp_path / "b", Scrubber())
    assert first == second
