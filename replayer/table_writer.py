"""A Parquet file that grows by row groups while a run goes on."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from s2l.replayer.disk_file import DiskFile

GROUP_ROWS: Final = 1024


class TableWriter:
    """Writes record batches of one schema; a row group is written when it is large enough."""

    def __init__(self, path: Path, schema: pa.Schema, make_room: Callable[[OSError], bool]) -> None:
        self._file = DiskFile(path, make_room)
        self._schema = schema
        self._writer = pq.ParquetWriter(self._file, schema, compression="zstd")
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows. Raises OSError when the disk is full."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        if self._rows >= GROUP_ROWS:
            self._write_group()

    def finish(self) -> None:
        """Write what is left and the file's end. Raises OSError."""
        if self._rows:
            self._write_group()
        self._writer.close()
        self._file.commit()

    def discard(self) -> None:
        """Leave nothing of a table that is not finished."""
        self._file.discard()

    def _write_group(self) -> None:
        table = pa.Table.from_batches(self._batches, self._schema)
        self._batches, self._rows = [], 0
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._file.flush_to_disk()
