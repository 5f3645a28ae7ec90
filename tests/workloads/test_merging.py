"""Parts that were captured apart are, merged, the trace that one capture would have made."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.errors import TraceError
from s2l.workloads.manifest import Collector
from s2l.workloads.merging import merge_traces
from s2l.workloads.query import Query
from s2l.workloads.retrieval import Retrieval
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter
from s2l.workloads.validation import validate

COLLECTOR = Collector("test", "1")


def _document(text: str) -> Document:
    return Document.of_text(url="http://a/", title="", text=text)


def _retrieval(query_id: str, offset_us: int, texts: Sequence[str], *, ends: bool) -> Retrieval:
    """A page after the other, a second apart; an empty text is a failed fetch."""
    arrivals = [
        Arrival(query_id, seq, ArrivalKind.APPEND, 0, seq * 1_000_000, (_document(text).doc_id,))
        if text
        else Arrival(
            query_id, seq, ArrivalKind.APPEND, 0, seq * 1_000_000, status="timeout", meta={"n": seq}
        )
        for seq, text in enumerate(texts)
    ]
    if ends:
        n = len(texts)
        arrivals.append(Arrival(query_id, n, ArrivalKind.END, 0, n * 1_000_000))
    query = Query(query_id, f"what is {query_id}?", ("a",), offset_us, {"of": query_id})
    return Retrieval(query, tuple(arrivals))


def _write(path: Path, retrievals: Iterable[Retrieval], texts: Iterable[str]) -> Trace:
    with TraceWriter.create(path, name="t", collector=COLLECTOR, licence="CC0-1.0") as writer:
        for text in texts:
            writer.add_document(_document(text))
        for retrieval in retrievals:
            writer.add_query(retrieval.query)
            for arrival in retrieval.arrivals:
                writer.add_arrival(arrival)
        writer.finish()
    return Trace.open(path)


def _merged(path: Path, parts: Sequence[Trace], **options: object) -> Trace:
    with TraceWriter.create(path, name="t", collector=COLLECTOR, licence="CC0-1.0") as writer:
        merge_traces(parts, writer, **options)  # type: ignore[arg-type]
        writer.finish()
    assert [problem.message for problem in validate(path)] == []
    return Trace.open(path)


A = _retrieval("a", 0, ["one", "", "two"], ends=True)
B = _retrieval("b", 500, ["two", "three"], ends=True)
C = _retrieval("c", 900, ["one"], ends=False)
D = _retrieval("d", 500, [], ends=True)


def test_queries_come_by_their_offsets_and_documents_once(tmp_path: Path) -> None:
    first = _write(tmp_path / "0", [A, C], ["one", "two"])
    second = _write(tmp_path / "1", [B, D], ["two", "three"])
    trace = _merged(tmp_path / "out", [first, second])
    assert list(trace.retrievals()) == [A, B, D, C]
    assert [document.text for document in trace.documents()] == ["one", "two", "three"]
    counts = trace.manifest.counts
    assert (counts.queries, counts.finished_queries, counts.arrivals) == (4, 3, 9)
    assert counts.failures == {"timeout": 1}


def test_equal_offsets_are_taken_from_the_first_part(tmp_path: Path) -> None:
    first = _write(tmp_path / "0", [D], [])
    second = _write(tmp_path / "1", [B], ["two", "three"])
    assert list(_merged(tmp_path / "x", [first, second]).retrievals()) == [D, B]
    assert list(_merged(tmp_path / "y", [second, first]).retrievals()) == [B, D]


def test_offsets_can_be_given_anew(tmp_path: Path) -> None:
    first = _write(tmp_path / "0", [A], ["one", "two"])
    second = _write(tmp_path / "1", [B, D], ["two", "three"])
    given = count(7, 10)
    trace = _merged(tmp_path / "out", [first, second], offset_us=lambda query: next(given))
    offsets = [(query.query_id, query.offset_us) for query in trace.queries()]
    assert offsets == [("a", 7), ("b", 17), ("d", 27)]


def test_a_query_in_two_parts_is_refused(tmp_path: Path) -> None:
    first, second = _write(tmp_path / "0", [D], []), _write(tmp_path / "1", [D], [])
    with pytest.raises(TraceError, match="do not fit together: query 'd' was added before"):
        _merged(tmp_path / "out", [first, second])


def test_no_parts_are_an_empty_trace(tmp_path: Path) -> None:
    assert _merged(tmp_path / "out", []).manifest.counts.queries == 0


@settings(max_examples=10, deadline=None)
@given(
    queries=st.lists(
        st.tuples(
            st.integers(0, 5),  # offsets that are often the same
            st.lists(st.sampled_from(["", "one", "two", "three"]), max_size=4),
            st.booleans(),
            st.integers(0, 2),
        ),
        max_size=12,
    )
)
def test_however_it_is_cut_the_whole_is_the_same(
    queries: list[tuple[int, list[str], bool, int]],
) -> None:
    made = [
        (_retrieval(f"q{number}", offset_us, texts, ends=ends), part)
        for number, (offset_us, texts, ends, part) in enumerate(queries)
    ]
    with TemporaryDirectory() as folder:
        parts = [
            _write(
                Path(folder) / str(part),
                (one := [retrieval for retrieval, of in made if of == part]),
                _texts(one),
            )
            for part in range(3)
        ]
        trace = _merged(Path(folder) / "out", parts)
        found = {one.query.query_id: one for one in trace.retrievals()}
        assert found == {one.query.query_id: one for one, _ in made}
        order = [(one.query.offset_us, part) for one, part in made]
        assert [q.offset_us for q in trace.queries()] == sorted(offset for offset, _ in order)
        texts = [document.text for document in trace.documents()]
        assert sorted(map(str, texts)) == _texts(one for one, _ in made)


def _texts(retrievals: Iterable[Retrieval]) -> list[str]:
    named = {doc for one in retrievals for arrival in one.arrivals for doc in arrival.doc_ids}
    return sorted(text for text in ("one", "two", "three") if _document(text).doc_id in named)


def test_each_query_is_told_when_it_is_merged(tmp_path: Path) -> None:
    first = _write(tmp_path / "0", [A, _moved(C, 2_000)], ["one", "two"])
    second = _write(tmp_path / "1", [B], ["two", "three"])
    seen: list[str] = []
    _merged(tmp_path / "out", [first, second], merged=lambda one: seen.append(one.query.query_id))
    assert seen == ["a", "b", "c"]


def _moved(retrieval: Retrieval, offset_us: int) -> Retrieval:
    return replace(retrieval, query=replace(retrieval.query, offset_us=offset_us))
