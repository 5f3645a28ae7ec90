"""Columns of a run's files: only those asked for, whole or batch by batch."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from s2l.replayer.run import RunError

BATCH_ROWS: Final = 65_536


def read_columns(file: Path, schema: pa.Schema, names: Sequence[str]) -> pa.Table:
    """The named columns of a Parquet file as the schema has them.

    A column that came later than the file is null where the schema allows it.

    Raises:
        RunError: the file is missing or damaged, or lacks a column.
    """
    batches = list(column_batches(file, schema, names))
    wanted = pa.schema([schema.field(name) for name in names])
    return pa.concat_tables(batches) if batches else wanted.empty_table()


def column_batches(file: Path, schema: pa.Schema, names: Sequence[str]) -> Iterator[pa.Table]:
    """The same, a table for each batch of at most ``BATCH_ROWS`` rows."""
    wanted = pa.schema([schema.field(name) for name in names])
    try:
        with pq.ParquetFile(file) as parquet:
            there = set(parquet.schema_arrow.names)
            lacking = [f.name for f in wanted if f.name not in there and not f.nullable]
            if lacking:
                raise RunError(f"{file}: cannot be read: it has no column {lacking[0]}")
            present = [name for name in names if name in there]
            for batch in parquet.iter_batches(BATCH_ROWS, columns=present):
                yield _complete(batch, wanted)
    except (OSError, KeyError, pa.ArrowException) as error:
        raise RunError(f"{file}: cannot be read: {error}") from None


def _complete(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.Table:
    table = pa.Table.from_batches([batch])
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.chunked_array([pa.nulls(batch.num_rows, field.type)])
        for field in wanted
    ]
    return pa.table(columns, schema=wanted)
