"""One Parquet file of a trace, read in bounded memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from s2l.workloads.errors import NotATrace, one_line
from s2l.workloads.schema import DOCUMENTS, RowFormat

# Rows at a time: arrivals and queries are small, documents are pages of text.
_BATCH_ROWS: Final = 8_192
_BATCH_DOCUMENTS: Final = 256
_READ_BYTES: Final = 1 << 20

# What reading a damaged file raises; a name that is not UTF-8 is a ValueError.
_DAMAGE: Final = (OSError, ValueError, pa.ArrowException)


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file, the kind of rows it holds and how many. Unknown columns are ignored."""

    path: Path
    rows: RowFormat[Any]
    n_rows: int

    def check(self) -> None:
        """Look at the footer alone.

        Raises:
            NotATrace: it is not Parquet, or a column is missing or of another type, or it has
                another number of rows.
        """
        with self._opened() as file:
            self._check_columns(file.schema_arrow)
            self._check_count(file.metadata.num_rows)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows, batch by batch, with exactly the columns of the format or the ones named.

        Raises:
            NotATrace: as ``check``, or a page is damaged.
        """
        count = 0
        for batch in self._read(lambda batch: batch, columns=columns):
            count += batch.num_rows
            yield batch
        self._check_count(count)  # a damaged footer can lose rows without any other sign

    def with_ids(
        self, doc_ids: pa.Array, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of these documents, all columns of the format or the ones named, ``doc_id``
        among them; of row groups without any, only the ids are read."""
        yield from self._read(
            lambda batch: batch.filter(pc.is_in(batch.column("doc_id"), value_set=doc_ids)),
            lambda file, group: self._holds(file, group, doc_ids),
            columns,
        )

    def _holds(self, file: Any, group: int, doc_ids: pa.Array) -> bool:
        ids = file.read_row_group(group, columns=["doc_id"]).column(0).cast(pa.string())
        return bool(pc.any(pc.is_in(ids, value_set=doc_ids)).as_py())

    def _read(
        self,
        select: Callable[[pa.RecordBatch], pa.RecordBatch],
        wants: Callable[[Any, int], bool] = lambda file, group: True,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        size = _BATCH_DOCUMENTS if self.rows is DOCUMENTS else _BATCH_ROWS
        schema = self.rows.schema
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        with self._opened() as file:
            self._check_columns(file.schema_arrow)
            try:
                for group in range(file.num_row_groups):
                    if wants(file, group):
                        for batch in file.iter_batches(size, [group], columns=schema.names):
                            yield select(self._conform(batch, schema))
            except _DAMAGE as error:
                raise NotATrace(f"{self.path}: damaged: {one_line(error)}") from None

    def _opened(self) -> Any:
        try:
            return pq.ParquetFile(
                self.path, buffer_size=_READ_BYTES, page_checksum_verification=True
            )
        except FileNotFoundError:
            raise NotATrace(f"{self.path}: missing, though the manifest lists it") from None
        except _DAMAGE as error:
            raise NotATrace(f"{self.path}: damaged: {one_line(error)}") from None

    def _check_count(self, found: int) -> None:
        if found != self.n_rows:
            raise NotATrace(f"{self.path}: has {found} rows; the manifest says {self.n_rows}")

    def _check_columns(self, schema: pa.Schema) -> None:
        for field in self.rows.schema:
            if schema.get_field_index(field.name) < 0:
                raise NotATrace(f"{self.path}: has no column {field.name!r} ({field.type})")
            found = schema.field(field.name).type
            if _family(found) != _family(field.type):
                raise NotATrace(
                    f"{self.path}: column {field.name!r} is {found}; it must be {field.type}"
                )

    def _conform(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        columns = []
        for field in schema:
            column = batch.column(field.name)
            if column.null_count and not field.nullable:
                raise NotATrace(f"{self.path}: column {field.name!r} has nulls")
            columns.append(column if column.type == field.type else column.cast(field.type))
        return pa.record_batch(columns, schema=schema)


def _family(kind: pa.DataType) -> str:
    """Types that hold the same values in other shapes are one family."""
    if pa.types.is_dictionary(kind):
        return _family(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list of {_family(kind.value_type)}"
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        return "string"
    return str(kind)
