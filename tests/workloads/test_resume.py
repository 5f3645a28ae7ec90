"""An interrupted capture goes on where it was, and ends as if nothing had happened."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.errors import NotATrace, TraceError, TraceNotFound
from s2l.workloads.query import Query
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter, recover
from s2l.workloads.validation import validate

QUEUE = [Query(f"q{n}", f"Question {n}?", (str(n),), meta={"urls": ["u"]}) for n in range(4)]


def page(name: str) -> Document:
    return Document.of_text(url=f"http://site/{name}", title=name, text=f"text of {name}")


def ask(writer: TraceWriter, query: Query, *pages: Document, end: bool = True) -> None:
    """Add a query whose pages arrive 1 ms apart."""
    writer.add_query(query)
    for seq, document in enumerate(pages):
        writer.add_document(document)
        arrival_us = 1000 * (seq + 1)
        doc_ids = (document.doc_id,)
        writer.add_arrival(Arrival(query.query_id, seq, ArrivalKind.APPEND, 0, arrival_us, doc_ids))
    if end:
        us = 1000 * len(pages)
        writer.add_arrival(Arrival(query.query_id, len(pages), ArrivalKind.END, 0, us))


def at(query: Query, offset_us: int) -> Query:
    return Query(query.query_id, query.text, query.answers, offset_us, query.meta)


def interrupted(small: Any, path: Path) -> None:
    """One query done, one cut short after its first page."""
    with small.create(path, queue=QUEUE) as writer:
        assert writer.todo == QUEUE
        ask(writer, at(QUEUE[0], 5), page("a"), page("b"))
        ask(writer, at(QUEUE[1], 9), page("c"), page("only before"), end=False)


def test_unfinished_queries_are_asked_anew_and_what_they_had_brought_goes(
    small: Any, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    interrupted(small, path)
    with TraceWriter.resume(path) as writer:
        assert writer.todo == QUEUE[1:]
        assert writer.collector == small.COLLECTOR
        assert writer.elapsed_us == 9 + 2000
        ask(writer, at(QUEUE[2], 3000), page("a"))
        ask(writer, at(QUEUE[1], 4000), page("c"), page("d"))
        ask(writer, at(QUEUE[3], 5000))
        manifest = writer.finish()
    assert manifest.counts.queries == manifest.counts.finished_queries == 4
    assert manifest.counts.arrivals == 3 + 2 + 3 + 1
    trace = Trace.open(path)
    assert [(r.query, [a.doc_ids for a in r.arrivals]) for r in trace.retrievals()] == [
        (at(QUEUE[0], 5), [(page("a").doc_id,), (page("b").doc_id,), ()]),
        (at(QUEUE[2], 3000), [(page("a").doc_id,), ()]),
        (at(QUEUE[1], 4000), [(page("c").doc_id,), (page("d").doc_id,), ()]),
        (at(QUEUE[3], 5000), [()]),
    ]
    assert [d.title for d in trace.documents()] == ["a", "b", "c", "d"]
    assert [p.message for p in validate(path)] == []
    assert not (path / "wal").exists()


def test_what_was_cut_short_is_kept_until_it_is_asked_again(small: Any, tmp_path: Path) -> None:
    path = tmp_path / "t"
    interrupted(small, path)
    with TraceWriter.resume(path) as writer:
        ask(writer, at(QUEUE[2], 3000), page("a"))
    counts = recover(path).counts
    assert (counts.queries, counts.finished_queries, counts.arrivals) == (3, 2, 3 + 2 + 2)
    assert len(list(Trace.open(path).documents())) == 4


def test_a_capture_is_resumed_any_number_of_times(small: Any, tmp_path: Path) -> None:
    path = tmp_path / "t"
    with small.create(path, queue=QUEUE):
        pass
    for n, query in enumerate(QUEUE):
        with TraceWriter.resume(path) as writer:
            assert writer.todo == QUEUE[n:]
            ask(writer, at(query, writer.elapsed_us), page(str(n)))
        with TraceWriter.resume(path) as writer:
            ask(writer, at(QUEUE[-1], writer.elapsed_us), page("x"), end=False) if n < 3 else None
    with TraceWriter.resume(path) as writer:
        assert writer.todo == []
        writer.finish()
    trace = Trace.open(path)
    assert [q.query_id for q in trace.queries()] == ["q0", "q1", "q2", "q3"]
    assert [d.title for d in trace.documents()] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("lost", range(0, 1800, 61))
def test_a_log_cut_anywhere_goes_on_from_its_last_whole_commit(
    small: Any, tmp_path: Path, lost: int
) -> None:
    whole, path = tmp_path / "whole", tmp_path / "t"
    with small.create(whole, queue=QUEUE) as writer:
        for query in QUEUE[:3]:
            ask(writer, query, page(query.query_id))
            writer.flush()
    shutil.copytree(whole, path)
    stream = path / "wal" / "arrivals.arrows"
    data = stream.read_bytes()
    stream.write_bytes(data[: max(0, len(data) - lost)])
    with TraceWriter.resume(path) as writer:
        for query in writer.todo:
            ask(writer, query, page(query.query_id))
        writer.finish()
    assert sorted(q.query_id for q in Trace.open(path).queries()) == ["q0", "q1", "q2", "q3"]
    assert len(list(Trace.open(path).documents())) == 4
    assert [p.message for p in validate(path)] == []


def test_stale_commits_after_the_sound_one_are_never_read_again(small: Any, tmp_path: Path) -> None:
    path = tmp_path / "t"
    with small.create(path, queue=QUEUE) as writer:
        for query in QUEUE[:3]:
            ask(writer, query, page(query.query_id))
            writer.flush()
    for name in ("arrivals", "documents", "queries"):  # all but the schemas is lost
        stream = path / "wal" / f"{name}.arrows"
        first = (path / "wal" / "commits.jsonl").read_text().splitlines()[0]
        ends = dict(zip(("queries", "documents", "arrivals"), json.loads(first), strict=True))
        stream.write_bytes(stream.read_bytes()[: ends[name]])
    with TraceWriter.resume(path) as writer:
        assert writer.todo == QUEUE
        ask(writer, QUEUE[3], page("new"))
    with TraceWriter.resume(path) as writer:
        assert writer.todo == QUEUE[:3]
    assert recover(path).counts.queries == 1


def test_a_capture_killed_before_it_began_leaves_a_folder_to_begin_in(
    small: Any, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    (path / "wal").mkdir(parents=True)
    (path / "wal" / "queue.jsonl").write_text("")
    with pytest.raises(NotATrace, match="holds no capture"):
        TraceWriter.resume(path)
    with small.create(path, queue=QUEUE[:1]) as writer:
        ask(writer, QUEUE[0])
        writer.finish()
    assert Trace.open(path).manifest.counts.queries == 1


def test_what_cannot_be_resumed_says_why(small: Any, trace_path: Path, tmp_path: Path) -> None:
    with pytest.raises(TraceNotFound, match="no such trace folder"):
        TraceWriter.resume(tmp_path / "none")
    with pytest.raises(TraceError, match="is finished; there is nothing to resume"):
        TraceWriter.resume(trace_path)
    with small.create(tmp_path / "noqueue"):
        pass
    with pytest.raises(NotATrace, match="its questions are not in it"):
        TraceWriter.resume(tmp_path / "noqueue")
    with (
        small.create(tmp_path / "busy", queue=QUEUE),
        pytest.raises(TraceError, match="still being written"),
    ):
        TraceWriter.resume(tmp_path / "busy")
