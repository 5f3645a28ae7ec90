"""What a log holds, as far as one must know to go on with it or to leave out what was redone."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from s2l.workloads.arrival import ArrivalKind
from s2l.workloads.schema import ARRIVALS, DOCUMENTS, QUERIES
from s2l.workloads.wal import QUERY_ROW, Commit, stream_path
from s2l.workloads.wal_reader import Indices, LoggedTable, log_batches

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LoggedState:
    """``finished``: ids of the queries with an end. ``query_rows``: logged rows of queries.

    ``elapsed_us`` is when the last arrival came, since the start of the trace.
    """

    finished: frozenset[str]
    documents: frozenset[str]
    query_rows: int
    elapsed_us: int


def logged_state(folder: Path, commit: Commit) -> LoggedState:
    """The state of the log in ``folder`` up to ``commit``."""
    ends = commit.ends()
    ids = _texts(folder, QUERIES.name, "query_id", ends)
    offsets = LoggedTable(folder, QUERIES.name, commit).integers("offset_us")
    finished: set[str] = set()
    elapsed_us = int(offsets.max(initial=0))
    for _, _, rows in log_batches(stream_path(folder, ARRIVALS.name), ends[ARRIVALS.name]):
        of_query = rows.column(QUERY_ROW).to_numpy()
        arrived = offsets[of_query] + rows.column("arrival_us").to_numpy()
        elapsed_us = max(elapsed_us, int(arrived.max(initial=0)))
        is_end = pc.equal(rows.column("kind"), ArrivalKind.END.value).to_numpy(zero_copy_only=False)
        finished.update(ids[row] for row in of_query[is_end])
    documents = frozenset(_texts(folder, DOCUMENTS.name, "doc_id", ends))
    return LoggedState(frozenset(finished), documents, len(ids), elapsed_us)


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows of a resumed log that make the trace, by table."""

    queries: Indices
    arrivals: Indices
    documents: Indices


def kept_rows(folder: Path, commit: Commit) -> Kept:
    """Leave out what was done anew: a query that occurs again later, and its arrivals.

    Documents that then belong to no arrival are left out too: they were fetched for a query that
    was done anew, and came otherwise the second time.
    """
    ends = commit.ends()
    latest = {id_: row for row, id_ in enumerate(_texts(folder, QUERIES.name, "query_id", ends))}
    queries = np.array(sorted(latest.values()), dtype=np.int64)
    of_query = LoggedTable(folder, ARRIVALS.name, commit).integers(QUERY_ROW)
    is_kept = np.isin(of_query, queries)
    named = _documents_of(folder, ends[ARRIVALS.name], is_kept)
    doc_ids = _texts(folder, DOCUMENTS.name, "doc_id", ends)
    documents = [row for row, doc_id in enumerate(doc_ids) if doc_id in named]
    return Kept(queries, np.flatnonzero(is_kept), np.array(documents, dtype=np.int64))


def _documents_of(folder: Path, end: int, is_kept: Mask) -> set[str]:
    named: set[str] = set()
    at = 0
    for _, _, rows in log_batches(stream_path(folder, ARRIVALS.name), end):
        kept = rows.column("doc_ids").filter(pa.array(is_kept[at : at + rows.num_rows]))
        named.update(kept.flatten().to_pylist())
        at += rows.num_rows
    return named


def _texts(folder: Path, table: str, column: str, ends: dict[str, int]) -> list[str]:
    texts: list[str] = []
    for _, _, rows in log_batches(stream_path(folder, table), ends[table]):
        texts += rows.column(column).to_pylist()
    return texts
