"""From the write-ahead log to the finished dataset."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from s2l.workloads.arrival import OK, ArrivalKind
from s2l.workloads.card import dataset_card
from s2l.workloads.durable import durable_file, sync_folder, write_durably
from s2l.workloads.manifest import MANIFEST, FileEntry, Manifest, TraceCounts
from s2l.workloads.schema import ARRIVALS, DOCUMENTS, QUERIES, RowFormat
from s2l.workloads.wal import QUERY_ROW, RESUMED, WAL, Commit, Header
from s2l.workloads.wal_reader import Indices, LoggedTable
from s2l.workloads.wal_state import Kept, kept_rows

CARD = "README.md"


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table is cut: bytes (as logged) and rows of a row group, row groups of a part."""

    group_bytes: int
    group_rows: int = 65_536
    groups: int = 32

    def rows_per_group(self, table: LoggedTable) -> int:
        """Rows that make up about ``group_bytes``."""
        mean = max(1, table.bytes // max(1, len(table)))
        return max(1, min(self.group_rows, self.group_bytes // mean))


# A reader that wants some documents reads whole row groups: theirs are small.
_ARRIVAL_LAYOUT = Layout(16 << 20)
_DOCUMENT_LAYOUT = Layout(4 << 20)


def seal(folder: Path, header: Header, commit: Commit) -> Manifest:
    """Write the dataset from the log up to ``commit``, then remove the log.

    The manifest comes last: until it is there, the log is, and sealing can begin again.

    Raises:
        OSError: the system would not write; the log is untouched.
    """
    queries = LoggedTable(folder, QUERIES.name, commit)
    arrivals = LoggedTable(folder, ARRIVALS.name, commit)
    documents = LoggedTable(folder, DOCUMENTS.name, commit)
    _remove_parts(folder)
    kept = _kept(folder, commit, queries, arrivals, documents)
    offsets_us = queries.integers("offset_us")[kept.queries]
    asked = kept.queries[np.argsort(offsets_us, kind="stable")]
    groups = _groups(queries, asked, _ARRIVAL_LAYOUT.rows_per_group(queries))
    files = [_write_part(folder, "queries.parquet", QUERIES, groups)]
    order = _arrival_order(arrivals, kept.arrivals, asked, len(queries))
    files += _write_parts(folder, ARRIVALS, arrivals, order)
    files += _write_parts(folder, DOCUMENTS, documents, kept.documents)
    counts = _counts(arrivals, kept)
    manifest = _manifest(header, counts, files)
    write_durably(folder / CARD, dataset_card(manifest).encode())
    write_durably(folder / MANIFEST, manifest.encode())
    shutil.rmtree(folder / WAL)
    sync_folder(folder)
    return manifest


def _manifest(header: Header, counts: TraceCounts, files: list[FileEntry]) -> Manifest:
    return Manifest(
        name=header.name,
        created_utc=header.created_utc,
        collector=header.collector,
        clock=header.clock,
        counts=counts,
        licence=header.licence,
        privacy=header.privacy,
        files=files,
    )


def _kept(folder: Path, commit: Commit, *tables: LoggedTable) -> Kept:
    """All rows of the log, or, where it was resumed, those that were not done anew."""
    if (folder / WAL / RESUMED).exists():
        return kept_rows(folder, commit)
    return Kept(*(np.arange(len(table)) for table in tables))


def _counts(arrivals: LoggedTable, kept: Kept) -> TraceCounts:
    statuses = arrivals.value_counts("status", kept.arrivals)
    kinds = arrivals.value_counts("kind", kept.arrivals)
    return TraceCounts(
        queries=len(kept.queries),
        finished_queries=kinds.get(ArrivalKind.END, 0),
        arrivals=len(kept.arrivals),
        documents=len(kept.documents),
        failures={status: n for status, n in statuses.items() if status != OK},
    )


def _arrival_order(
    arrivals: LoggedTable, rows: Indices, asked: Indices, query_rows: int
) -> Indices:
    """``rows`` by place of their query, then ``seq``: both are in one integer's halves."""
    place = np.zeros(query_rows, dtype=np.int64)
    place[asked] = np.arange(len(asked))
    keys = place[arrivals.integers(QUERY_ROW)]
    keys <<= 32
    keys |= arrivals.integers("seq")
    return rows[np.argsort(keys[rows], kind="stable")]


def _groups(table: LoggedTable, order: Indices, rows: int) -> Iterator[pa.Table]:
    for at in range(0, len(order), rows):
        yield table.take(order[at : at + rows])


def _write_parts(
    folder: Path, rows: RowFormat[Any], table: LoggedTable, order: Indices
) -> list[FileEntry]:
    """Write a table as ``NAME/part-00000.parquet``...; an empty one has one empty part."""
    layout = _DOCUMENT_LAYOUT if rows is DOCUMENTS else _ARRIVAL_LAYOUT
    (folder / rows.name).mkdir(exist_ok=True)
    group = layout.rows_per_group(table)
    part = group * layout.groups
    entries = []
    for number, at in enumerate(range(0, max(1, len(order)), part)):
        name = f"{rows.name}/part-{number:05}.parquet"
        groups = _groups(table, order[at : at + part], group)
        entries.append(_write_part(folder, name, rows, groups))
    return entries


def _write_part(
    folder: Path, name: str, rows: RowFormat[Any], groups: Iterator[pa.Table]
) -> FileEntry:
    count = 0
    with (
        durable_file(folder / name) as file,
        pq.ParquetWriter(
            file,
            rows.schema,
            compression="zstd",
            compression_level=6,
            use_dictionary=list(rows.dictionary),
            column_encoding=dict.fromkeys(rows.delta, "DELTA_BINARY_PACKED"),
            write_page_checksum=True,
        ) as parquet,
    ):
        for group in groups:
            parquet.write_table(group.select(rows.schema.names), row_group_size=len(group))
            count += len(group)
    with (folder / name).open("rb") as written:
        digest = file_digest(written, "sha256").hexdigest()
        return FileEntry(name, count, written.tell(), digest)


def _remove_parts(folder: Path) -> None:
    """Remove what a sealing that was cut short may have left."""
    for rows in (ARRIVALS, DOCUMENTS):
        if (folder / rows.name).is_dir():
            shutil.rmtree(folder / rows.name)
    for name in ("queries.parquet", CARD):
        for leftover in (folder / name, folder / f"{name}.tmp"):
            leftover.unlink(missing_ok=True)
