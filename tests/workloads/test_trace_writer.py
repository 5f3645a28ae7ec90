"""What a writer accepts, and what it keeps when it is left early."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.errors import NotATrace, TraceError, TraceNotFound
from s2l.workloads.query import Query
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter, recover

APPEND, END, SEARCH = ArrivalKind.APPEND, ArrivalKind.END, ArrivalKind.SEARCH
PAGE = Document.of_text(url="u", title="t", text="text")


@pytest.fixture
def writer(tmp_path: Path, small: Any) -> TraceWriter:
    made: TraceWriter = small.create(tmp_path / "t")
    made.add_query(Query("q", "?"))
    made.add_document(PAGE)
    made.add_arrival(Arrival("q", 0, APPEND, 5, 10))
    return made


def test_refuses_what_is_not_a_new_folder(tmp_path: Path, small: Any) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(TraceError, match="not empty; name a new folder"):
        small.create(tmp_path)
    with pytest.raises(TraceError, match="is a file"):
        small.create(tmp_path / "file")
    with pytest.raises(TraceError, match="Not a directory"):
        small.create(tmp_path / "file" / "t")
    with pytest.raises(TraceError, match="'secret' is not one of full, urls, hashed"):
        small.create(tmp_path / "t", privacy="secret")
    (tmp_path / "empty").mkdir()
    small.create(tmp_path / "empty").finish()


@pytest.mark.parametrize(
    ("arrival", "text"),
    [
        (Arrival("r", 0, APPEND, 0, 1), "its query was not added"),
        (Arrival("q", 0, APPEND, 10, 11), "seq must be 1"),
        (Arrival("q", 2, APPEND, 10, 11), "seq must be 1"),
        (Arrival("q", 1, APPEND, 0, 9), "arrival_us must be >= 10"),
        (Arrival("q", 1, APPEND, 12, 11), "start_us must be in 0..arrival_us"),
        (Arrival("q", 1, APPEND, -1, 11), "start_us must be in 0..arrival_us"),
        (Arrival("q", 1, APPEND, 0, 2**63), "arrival_us must be"),
        (Arrival("q", 1, APPEND, 0, 11, ("nope",)), "add document 'nope' before it"),
        (Arrival("q", 1, APPEND, 0, 11, (PAGE.doc_id,), "timeout"), "only an ok append"),
        (Arrival("q", 1, SEARCH, 0, 11, (PAGE.doc_id,)), "only an ok append"),
        (Arrival("q", 1, APPEND, 0, 11, detail="\ud800"), "surrogates not allowed"),
        (Arrival("q", 1, APPEND, 0, 11, meta={"a": object()}), "does not belong"),
        (Arrival("q", 1, APPEND, 0, 11.5), "does not belong"),  # type: ignore[arg-type]
        (Arrival("q", 1, "later", 0, 11), "'later' is not a valid"),  # type: ignore[arg-type]
    ],
)
def test_misuse_is_refused_and_leaves_no_trace(
    writer: TraceWriter, arrival: Arrival, text: str
) -> None:
    with writer:
        with pytest.raises(ValueError, match=text):
            writer.add_arrival(arrival)
        writer.add_arrival(Arrival("q", 1, END, 10, 10))
        with pytest.raises(ValueError, match="its query has ended"):
            writer.add_arrival(Arrival("q", 2, END, 10, 10))
        assert writer.finish().counts.arrivals == 2


def test_queries_and_documents_are_checked(writer: TraceWriter) -> None:
    with writer:
        for query, text in (
            (Query("q", "again"), "'q' was added before"),
            (Query("", "?"), "needs a query_id"),
            (Query("n", "?", offset_us=-1), "offset_us -1 is not >= 0"),
        ):
            with pytest.raises(ValueError, match=text):
                writer.add_query(query)
        with pytest.raises(ValueError, match="n_chars is not"):
            writer.add_document(replace(PAGE, doc_id="other", n_chars=3))
        writer.add_document(replace(PAGE, title="the same id again"))
        counts = writer.finish().counts
    assert (counts.queries, counts.documents) == (1, 1)


def test_leaving_early_keeps_what_was_added(tmp_path: Path, writer: TraceWriter) -> None:
    with pytest.raises(KeyboardInterrupt), writer:
        raise KeyboardInterrupt
    manifest = recover(tmp_path / "t")
    assert manifest.counts.arrivals == 1
    assert manifest.counts.incomplete_queries == 1
    assert [one.finished for one in Trace.open(tmp_path / "t").retrievals()] == [False]


def test_recovering_twice_changes_nothing(tmp_path: Path, writer: TraceWriter) -> None:
    with writer:
        pass
    first = recover(tmp_path / "t")
    data = (tmp_path / "t" / "manifest.json").read_bytes()
    assert recover(tmp_path / "t") == first
    assert (tmp_path / "t" / "manifest.json").read_bytes() == data


def test_a_capture_that_goes_on_is_not_recovered(tmp_path: Path, writer: TraceWriter) -> None:
    with writer:
        with pytest.raises(TraceError, match="still being written"):
            recover(tmp_path / "t")
        writer.finish()


def test_nothing_to_recover(tmp_path: Path) -> None:
    with pytest.raises(TraceNotFound):
        recover(tmp_path / "none")
    with pytest.raises(NotATrace, match="holds no capture to recover"):
        recover(tmp_path)


def test_a_closed_writer_says_so(writer: TraceWriter) -> None:
    writer.finish()
    with pytest.raises(ValueError, match="the writer is closed"):
        writer.finish()


def test_flushing_in_another_thread_loses_nothing(tmp_path: Path, writer: TraceWriter) -> None:
    done = threading.Event()

    def flush_on() -> None:
        while not done.is_set():
            writer.flush()

    thread = threading.Thread(target=flush_on)
    with writer:
        thread.start()
        for seq in range(1, 5_000):
            writer.add_arrival(Arrival("q", seq, APPEND, seq, seq + 10, (PAGE.doc_id,)))
        done.set()
        thread.join()
        writer.finish()
    assert [one.seq for one in Trace.open(tmp_path / "t").arrivals()] == list(range(5_000))
