"""How records lie in tables: the three schemas, and the one place that converts rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec
import pyarrow as pa

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.query import Query

T = TypeVar("T")
Row = tuple[Any, ...]

_KINDS: Final = {kind.value: kind for kind in ArrivalKind}  # calling the enum takes far longer
_META: Final = msgspec.json.Decoder(dict[str, Any])


def _schema(*columns: tuple[str, pa.DataType], nullable: tuple[str, ...] = ()) -> pa.Schema:
    return pa.schema([pa.field(name, kind, name in nullable) for name, kind in columns])


@dataclass(frozen=True, slots=True)
class RowFormat(Generic[T]):
    """One kind of record as rows of a table.

    ``dictionary`` names the Parquet columns that repeat (ids, hashes, kinds), ``delta`` the
    integer columns whose neighbours are near each other.
    """

    name: str
    schema: pa.Schema
    to_row: Callable[[T], Row]
    to_record: Callable[..., T]
    dictionary: tuple[str, ...]
    delta: tuple[str, ...] = ()

    def row(self, record: T) -> Row:
        """The record's row, in the order of the schema.

        Raises:
            ValueError: a value that no file could hold: not Unicode, not JSON, no integer.
        """
        try:
            return self.to_row(record)
        except (TypeError, AttributeError, UnicodeError, msgspec.MsgspecError) as error:
            raise ValueError(f"{self.name}: a value that does not belong: {error}") from None

    def batch(self, rows: Sequence[Row], schema: pa.Schema | None = None) -> pa.RecordBatch:
        """Rows as one record batch, of ``schema`` where the rows are longer than ours."""
        schema = self.schema if schema is None else schema
        columns = zip(*rows, strict=True)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
        return pa.record_batch(arrays, schema=schema)

    def records(self, batch: pa.RecordBatch) -> Iterator[T]:
        """The records of a batch with this schema.

        Raises:
            ValueError, msgspec.MsgspecError: a value that is no such record's.
        """
        return map(self.to_record, *(column.to_pylist() for column in batch.columns))


def _text(value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} where text belongs")
    if not value.isascii():
        value.encode()  # lone surrogates are text to Python and to no file
    return value


def _json(meta: Any) -> str:
    return msgspec.json.encode(dict(meta)).decode() if meta else "{}"


def _meta(text: str) -> dict[str, Any]:
    return {} if text == "{}" else _META.decode(text)


def _query_row(q: Query) -> Row:
    answers = tuple(map(_text, q.answers))
    return _text(q.query_id), _text(q.text), answers, q.offset_us.__index__(), _json(q.meta)


def _query(query_id: str, text: str, answers: list[str], offset_us: int, meta: str) -> Query:
    return Query(query_id, text, tuple(answers), offset_us, _meta(meta))


def _arrival_row(a: Arrival) -> Row:
    return (
        a.query_id,
        a.seq.__index__(),
        _KINDS.get(a.kind) or ArrivalKind(a.kind),
        a.start_us.__index__(),
        a.arrival_us.__index__(),
        tuple(a.doc_ids),
        _text(a.status),
        _text(a.detail),
        _json(a.meta),
    )


def _arrival(
    query_id: str,
    seq: int,
    kind: str,
    start_us: int,
    arrival_us: int,
    doc_ids: list[str],
    status: str,
    detail: str,
    meta: str,
) -> Arrival:
    known = _KINDS.get(kind) or ArrivalKind(kind)
    docs = tuple(doc_ids)
    return Arrival(query_id, seq, known, start_us, arrival_us, docs, status, detail, _meta(meta))


def _document_row(d: Document) -> Row:
    text = None if d.text is None else _text(d.text)
    head = (_text(d.doc_id), _text(d.url), _text(d.title), text, _text(d.text_sha256))
    return *head, d.n_chars.__index__(), _text(d.mime), _text(d.fetched_utc), _json(d.meta)


def _document(doc_id: str, url: str, title: str, text: str | None, *rest: Any) -> Document:
    digest, n_chars, mime, fetched_utc, meta = rest
    return Document(doc_id, url, title, text, digest, n_chars, mime, fetched_utc, _meta(meta))


QUERIES: Final[RowFormat[Query]] = RowFormat(
    "queries",
    _schema(
        ("query_id", pa.string()),
        ("text", pa.string()),
        ("answers", pa.list_(pa.string())),
        ("offset_us", pa.int64()),
        ("meta", pa.string()),
    ),
    _query_row,
    _query,
    dictionary=("query_id",),
    delta=("offset_us",),
)

ARRIVALS: Final[RowFormat[Arrival]] = RowFormat(
    "arrivals",
    _schema(
        ("query_id", pa.string()),
        ("seq", pa.int32()),
        ("kind", pa.string()),
        ("start_us", pa.int64()),
        ("arrival_us", pa.int64()),
        ("doc_ids", pa.list_(pa.string())),
        ("status", pa.string()),
        ("detail", pa.string()),
        ("meta", pa.string()),
    ),
    _arrival_row,
    _arrival,
    dictionary=("query_id", "kind", "doc_ids.list.element", "status", "detail", "meta"),
    delta=("seq", "start_us", "arrival_us"),
)

DOCUMENTS: Final[RowFormat[Document]] = RowFormat(
    "documents",
    _schema(
        ("doc_id", pa.string()),
        ("url", pa.string()),
        ("title", pa.string()),
        ("text", pa.string()),
        ("text_sha256", pa.string()),
        ("n_chars", pa.int32()),
        ("mime", pa.string()),
        ("fetched_utc", pa.string()),
        ("meta", pa.string()),
        nullable=("text",),
    ),
    _document_row,
    _document,
    dictionary=("doc_id", "text_sha256", "mime", "fetched_utc"),
)

FORMATS: Final[tuple[RowFormat[Any], ...]] = (QUERIES, ARRIVALS, DOCUMENTS)
