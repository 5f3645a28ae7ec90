"""Reading a trace dataset: checked once when it is opened, then streamed."""

from collections.abc import Collection, Iterator
from hashlib import sha256
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

import msgspec
import pyarrow as pa

from s2l.workloads.arrival import Arrival
from s2l.workloads.document import Document
from s2l.workloads.errors import NotATrace, TraceNotFound, UnfinishedTrace, disk_error, one_line
from s2l.workloads.manifest import MANIFEST, FileEntry, Manifest, decode_manifest
from s2l.workloads.query import Query
from s2l.workloads.retrieval import Retrieval
from s2l.workloads.schema import ARRIVALS, DOCUMENTS, FORMATS, QUERIES, RowFormat
from s2l.workloads.table_file import TableFile
from s2l.workloads.wal import WAL

T = TypeVar("T")


class Trace:
    """A finished trace folder, read only. Its iterators stream; none holds the whole trace."""

    def __init__(self, path: Path, manifest: Manifest, digest: str) -> None:
        self.path = path
        self.manifest = manifest
        self.sha256 = digest
        """Of ``manifest.json``, which names the sha256 of every file: it identifies the trace."""

    @classmethod
    def open(cls, path: Path) -> "Trace":
        """Read the manifest and the footer of every file it lists.

        Raises:
            TraceNotFound: nothing is there.
            NotATrace: something else is there, or a file is missing, cut short or damaged.
            UnsupportedFormat: it has another major version.
            UnfinishedTrace: its capture was interrupted.
        """
        data = read_manifest_bytes(path)
        manifest = decode_manifest(data, path / MANIFEST)
        for entry in manifest.files:
            _check_size(path / entry.path, entry)
        for rows in FORMATS:
            for file in table_files(path, manifest, rows):
                file.check()
        return cls(path, manifest, sha256(data).hexdigest())

    def queries(self) -> Iterator[Query]:
        """All queries, in the order in which they were asked."""
        return self._records(QUERIES)

    def arrivals(self) -> Iterator[Arrival]:
        """All arrivals, query by query in the order of ``queries``, then by ``seq``."""
        return self._records(ARRIVALS)

    def retrievals(self) -> Iterator[Retrieval]:
        """Every query with its arrivals; those without any, too.

        Raises:
            NotATrace: the arrivals are not in the order of the queries.
        """
        groups = groupby(self.arrivals(), attrgetter("query_id"))
        group = next(groups, None)
        for query in self.queries():
            if group is not None and group[0] == query.query_id:
                yield Retrieval(query, tuple(group[1]))
                group = next(groups, None)
            else:
                yield Retrieval(query, ())
        if group is not None:
            raise NotATrace(
                f"{self.path}: arrivals of query {group[0]!r} are not in the order of the queries"
            )

    def documents(self, doc_ids: Collection[str] | None = None) -> Iterator[Document]:
        """All documents, or only those with these ids, in the order of the files.

        Raises:
            NotATrace: after the last one, where some of ``doc_ids`` are not in the trace.
        """
        if doc_ids is None:
            yield from self._records(DOCUMENTS)
            return
        missing = set(doc_ids)
        wanted = pa.array(sorted(missing), pa.string())
        for file in table_files(self.path, self.manifest, DOCUMENTS):
            if not missing:
                return
            for batch in file.with_ids(wanted):
                for document in _decoded(file, batch, DOCUMENTS):
                    missing.discard(document.doc_id)
                    yield document
        if missing:
            raise NotATrace(f"{self.path}: has no document {min(missing)!r}")

    def texts(self, doc_ids: Collection[str] | None = None) -> dict[str, str | None]:
        """The texts of all documents or of these, None where it is hidden; nothing else is read.

        Raises:
            NotATrace: some of ``doc_ids`` are not in the trace.
        """
        found: dict[str, str | None] = {}
        for file, batch in self._text_batches(None if doc_ids is None else set(doc_ids)):
            try:
                columns = (column.to_pylist() for column in batch.columns)
                found.update(zip(*columns, strict=True))
            except ValueError as error:
                raise NotATrace(f"{file.path}: damaged: {one_line(error)}") from None
        if doc_ids is None:
            return found
        if missing := set(doc_ids) - found.keys():
            raise NotATrace(f"{self.path}: has no document {min(missing)!r}")
        return {doc_id: found[doc_id] for doc_id in doc_ids}

    def _text_batches(self, wanted: set[str] | None) -> Iterator[tuple[TableFile, pa.RecordBatch]]:
        """Ids and texts of these documents, of others too where they are most of all: to look for
        most costs more than to read all."""
        columns, ids = ("doc_id", "text"), pa.array(sorted(wanted or ()), pa.string())
        every = wanted is None or 2 * len(wanted) >= self.manifest.counts.documents
        for file in table_files(self.path, self.manifest, DOCUMENTS):
            for batch in file.batches(columns) if every else file.with_ids(ids, columns):
                yield file, batch

    def _records(self, rows: RowFormat[T]) -> Iterator[T]:
        for file in table_files(self.path, self.manifest, rows):
            for batch in file.batches():
                yield from _decoded(file, batch, rows)


def table_files(path: Path, manifest: Manifest, rows: RowFormat[T]) -> list[TableFile]:
    """The files of one table, as the manifest lists them.

    Raises:
        NotATrace: it lists none.
    """
    found = [
        TableFile(path / entry.path, rows, entry.rows)
        for entry in manifest.files
        if entry.path == f"{rows.name}.parquet"
        or (entry.path.startswith(f"{rows.name}/") and entry.path.endswith(".parquet"))
    ]
    if not found:
        raise NotATrace(f"{path / MANIFEST}: lists no Parquet file of {rows.name}")
    return found


def read_manifest_bytes(path: Path) -> bytes:
    """The bytes of the manifest of the trace at ``path``; raises what ``Trace.open`` does."""
    file = path / MANIFEST
    try:
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        if not path.exists():
            raise TraceNotFound(f"{path}: no such trace folder") from None
    except OSError as error:
        raise disk_error(file, error) from None
    if (path / WAL).is_dir():
        raise UnfinishedTrace(
            f"{path}: unfinished, its capture was interrupted; keep what was captured with: "
            f"s2l dataset recover {path}"
        )
    raise NotATrace(f"{path}: not a trace (no {MANIFEST}); name a folder written by s2l collect")


def _check_size(file: Path, entry: FileEntry) -> None:
    if not file.is_file():
        raise NotATrace(f"{file}: missing, though the manifest lists it")
    if (size := file.stat().st_size) != entry.bytes:
        raise NotATrace(f"{file}: has {size} bytes; the manifest says {entry.bytes}")


def _decoded(file: TableFile, batch: pa.RecordBatch, rows: RowFormat[T]) -> list[T]:
    try:
        return list(rows.records(batch))
    except (ValueError, msgspec.MsgspecError) as error:
        raise NotATrace(f"{file.path}: damaged: {one_line(error)}") from None
