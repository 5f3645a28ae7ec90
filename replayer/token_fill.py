"""Tokens of answers whose server did not say: counted by the tokenizer, once nothing is timed."""

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from s2l.replayer.run import REQUEST_SCHEMA, RunError
from s2l.replayer.table_writer import TableWriter
from s2l.serving_adapter.base import ServingAdapter

REQUESTS: Final = "requests.parquet"


async def fill_output_tokens(run: Path, adapter: ServingAdapter) -> int:
    """Count the tokens of complete answers without usage; how many there were.

    The table is rewritten row group by row group, and replaced once it is whole.

    Raises:
        RunError: the disk does not take it; the table stays as it was.
        ServingError: the server does not count.
    """
    target: TableWriter | None = None
    try:
        with pq.ParquetFile(run / REQUESTS) as source:
            target = TableWriter(run / REQUESTS, REQUEST_SCHEMA, lambda _: False)
            filled = await _rewrite(source, target, adapter)
            target.finish()
    except OSError as error:
        raise RunError(f"{run / REQUESTS}: cannot be rewritten: {error.strerror}") from error
    finally:
        if target is not None:
            target.discard()
    return filled


async def _rewrite(source: pq.ParquetFile, target: TableWriter, adapter: ServingAdapter) -> int:
    filled = 0
    for number in range(source.num_row_groups):
        table = source.read_row_group(number)
        missing = _uncounted(table)
        texts = table.column("output_text").filter(missing).to_pylist()
        counts = await adapter.count_tokens(texts) if texts else []
        filled += len(counts)
        for batch in _filled(table, missing, counts).to_batches():
            target.add(batch)
    return filled


def _uncounted(table: pa.Table) -> pa.ChunkedArray:
    complete = pc.is_null(table.column("error_type"))
    return pc.and_(complete, pc.is_null(table.column("output_tokens")))


def _filled(table: pa.Table, missing: pa.ChunkedArray, counts: list[int]) -> pa.Table:
    columns = {
        "output_tokens": pa.array(counts, pa.int32()),
        "token_source": pa.array(["tokenizer"] * len(counts), pa.string()),
    }
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        old = table.column(name).combine_chunks()
        new = pc.replace_with_mask(old, missing.combine_chunks(), values)
        table = table.set_column(at, REQUEST_SCHEMA.field(name), new)
    return table.cast(REQUEST_SCHEMA)
