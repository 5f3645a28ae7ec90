"""A small trace on disk, written through the real writer."""

import pytest

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter

N_QUERIES = 4
PAGES = 3
PAGE_GAP_US = 60_000
DUE_US = 400_000


@pytest.fixture(scope="session")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Four queries of a search, three pages 60 ms apart (one more fails), an end at 400 ms; one
    query more that never ended."""
    path = tmp_path_factory.mktemp("small") / "trace"
    with TraceWriter.create(
        path, name="small", collector=Collector("test", "1", {}, 0), licence="CC0-1.0"
    ) as writer:
        for number in range(N_QUERIES + 1):
            _write_query(writer, number, finished=number < N_QUERIES)
        writer.finish()
    return Trace.open(path)


def _write_query(writer: TraceWriter, number: int, *, finished: bool) -> None:
    query_id = f"q{number}"
    query = Query(query_id, f"What is {number}?", (f"answer {number}",), number * 100_000)
    writer.add_query(query)
    rows = [Arrival(query_id, 0, ArrivalKind.SEARCH, 0, 50_000)]
    for page in range(PAGES):
        text = " ".join(f"w{number}.{page}.{i}" for i in range(20 + 10 * page))
        document = Document.of_text(url=f"http://site/{number}/{page}", title="t", text=text)
        writer.add_document(document)
        at_us = 100_000 + page * PAGE_GAP_US
        rows.append(
            Arrival(query_id, page + 1, ArrivalKind.APPEND, 50_000, at_us, (document.doc_id,))
        )
    failed = Arrival(
        query_id, PAGES + 1, ArrivalKind.APPEND, 50_000, 300_000, (), "http_503", "busy"
    )
    rows.append(failed)
    if finished:
        rows.append(Arrival(query_id, PAGES + 2, ArrivalKind.END, 0, DUE_US))
    for row in rows:
        writer.add_arrival(row)


@pytest.fixture(scope="session")
def changing_trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Two queries whose context is replaced three times, then added to."""
    path = tmp_path_factory.mktemp("small") / "changing"
    with TraceWriter.create(
        path, name="changing", collector=Collector("test", "1", {}, 0), licence="CC0-1.0"
    ) as writer:
        for number in range(2):
            _write_changes(writer, f"q{number}")
        writer.finish()
    return Trace.open(path)


def _write_changes(writer: TraceWriter, query_id: str) -> None:
    writer.add_query(Query(query_id, f"What is {query_id}?"))
    ids = {}
    for letter in "abcde":
        text = " ".join(f"{query_id}.{letter}{i}" for i in range(10))
        document = Document.of_text(url=f"mem://{query_id}/{letter}", title=letter, text=text)
        writer.add_document(document)
        ids[letter] = document.doc_id
    replace, append = ArrivalKind.REPLACE, ArrivalKind.APPEND
    changes = ((replace, "ab"), (replace, "bc"), (replace, "bcd"), (append, "e"))
    for seq, (kind, letters) in enumerate(changes):
        at_us = 50_000 * (seq + 1)
        documents = tuple(ids[letter] for letter in letters)
        writer.add_arrival(Arrival(query_id, seq, kind, at_us - 1, at_us, documents))
    writer.add_arrival(Arrival(query_id, len(changes), ArrivalKind.END, 0, 300_000))
