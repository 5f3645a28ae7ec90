"""Every format is complete, and hostile texts pass through those that carry texts."""

from pathlib import Path
from typing import Any

import pytest

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.errors import ExportFailed
from s2l.workloads.formats.base import PLAIN
from s2l.workloads.formats.registry import FORMATS
from s2l.workloads.query import Query
from s2l.workloads.trace import Trace

TEXTS = ["a\rb\r\nc\n", 'q"u""o,t;e', "\x00 nul", "\u2028 line \u2029", "=cmd()", " x ", "😀\ufeff"]


def hostile(path: Path, small: Any, kind: ArrivalKind) -> Trace:
    """A trace of such texts, in which only what all text formats carry is set."""
    pages = [Document.of_text(url="", title="", text=text, mime=PLAIN) for text in TEXTS]
    with small.create(path) as writer:
        writer.add_query(Query("5", 'Who,\r\n"really"?'))
        for page in pages:
            writer.add_document(page)
        writer.add_arrival(Arrival("5", 0, ArrivalKind.SEARCH, 0, 7))
        for seq, page in enumerate(pages, start=1):
            writer.add_arrival(Arrival("5", seq, kind, 7, 7 + seq, (page.doc_id,)))
        last_us = 7 + len(pages)
        writer.add_arrival(Arrival("5", len(pages) + 1, ArrivalKind.END, last_us, last_us))
        writer.finish()
    return Trace.open(path)


def test_hostile_texts_in_a_crawl(bench: Any, small: Any, same: Any) -> None:
    trace = hostile(bench.new(), small, ArrivalKind.APPEND)
    same(trace, bench.read("stream2llm-crawl", bench.write("stream2llm-crawl", trace)))


def test_hostile_texts_in_a_corpus(bench: Any, small: Any) -> None:
    trace = hostile(bench.new(), small, ArrivalKind.REPLACE)
    again = bench.read("stream2llm-anns", bench.write("stream2llm-anns", trace))
    assert list(again.documents()) == list(trace.documents())
    assert list(again.queries()) == list(trace.queries())


@pytest.mark.parametrize("fmt", ["mooncake", "custom", "guidellm"])
def test_hostile_texts_in_prompts(fmt: str, bench: Any, small: Any) -> None:
    trace = hostile(bench.new(), small, ArrivalKind.APPEND)
    (query,) = bench.read(fmt, bench.write(fmt, trace, ".jsonl")).queries()
    assert query.text == "\n".join([*TEXTS, 'Who,\r\n"really"?'])


def test_every_format_reads_and_writes() -> None:
    for name, fmt in FORMATS.items():
        assert fmt.name == name
        assert fmt.write is not None
        assert fmt.what
        assert fmt.loses


def test_an_id_that_a_list_cannot_hold(bench: Any, small: Any) -> None:
    path = bench.new()
    text = Document.of_text(url="", title="", text="t")
    page = Document("a,b", "", "", "t", text.text_sha256, 1)
    with small.create(path) as writer:
        writer.add_query(Query("1", "?"))
        writer.add_document(page)
        writer.add_arrival(Arrival("1", 0, ArrivalKind.REPLACE, 0, 1, ("a,b",)))
        writer.add_arrival(Arrival("1", 1, ArrivalKind.END, 1, 1))
        writer.finish()
    with pytest.raises(ExportFailed, match="'a,b' cannot be in a list"):
        bench.write("stream2llm-anns", Trace.open(path))
