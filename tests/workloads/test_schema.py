"""Any record survives being a row."""

from dataclasses import fields

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.query import Query
from s2l.workloads.schema import ARRIVALS, DOCUMENTS, QUERIES

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
TIME = st.integers(0, 2**63 - 1)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
META = st.dictionaries(TEXT, st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT)


@given(st.lists(st.builds(Query, TEXT, TEXT, TEXTS, TIME, META)))
def test_queries(records: list[Query]) -> None:
    rows = [QUERIES.row(record) for record in records] or [QUERIES.row(Query("q", ""))]
    batch = QUERIES.batch(rows)
    batch.validate(full=True)
    assert list(QUERIES.records(batch)) == (records or [Query("q", "")])


@given(
    st.builds(
        Arrival,
        TEXT,
        st.integers(0, 2**31 - 1),
        st.sampled_from(ArrivalKind),
        TIME,
        TIME,
        TEXTS,
        TEXT,
        TEXT,
        META,
    )
)
def test_arrivals(record: Arrival) -> None:
    [found] = ARRIVALS.records(ARRIVALS.batch([ARRIVALS.row(record)]))
    assert found == record
    assert type(found.kind) is ArrivalKind


@given(
    st.builds(
        Document,
        TEXT,
        TEXT,
        TEXT,
        st.none() | TEXT,
        TEXT,
        st.integers(0, 2**31 - 1),
        TEXT,
        TEXT,
        META,
    )
)
def test_documents(record: Document) -> None:
    assert list(DOCUMENTS.records(DOCUMENTS.batch([DOCUMENTS.row(record)]))) == [record]


def test_columns_are_the_fields_of_the_records() -> None:
    for rows, record in ((QUERIES, Query), (ARRIVALS, Arrival), (DOCUMENTS, Document)):
        assert rows.schema.names == [field.name for field in fields(record)]


def test_types_of_the_columns() -> None:
    assert ARRIVALS.schema.field("seq").type == pa.int32()
    assert ARRIVALS.schema.field("arrival_us").type == pa.int64()
    assert QUERIES.schema.field("answers").type == pa.list_(pa.string())
    assert [field.name for field in DOCUMENTS.schema if field.nullable] == ["text"]


@pytest.mark.parametrize(
    "query",
    [
        Query("q", "\udcff"),
        Query("q", "?", ("\udcff",)),
        Query("q", None),  # type: ignore[arg-type]
        Query("q", "?", offset_us=1.5),  # type: ignore[arg-type]
        Query("q", "?", meta={"set": object()}),
    ],
)
def test_what_no_file_could_hold(query: Query) -> None:
    with pytest.raises(ValueError, match="queries: a value that does not belong"):
        QUERIES.row(query)
