"""Stream2LLM vector search traces: windows of document pools, a map of queries, a corpus."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.errors import ImportFailed, disk_error
from s2l.workloads.formats.base import PLAIN, ImportOptions, Record
from s2l.workloads.formats.csv_rows import csv_rows
from s2l.workloads.formats.delays import Offsets
from s2l.workloads.formats.fields import count_of
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.query import Query

ARRIVALS: Final = ("start", "end")
MAP: Final = "query_trace_map*.json"
RESULTS: Final = "res"
COLUMNS: Final = ("StartTime_us", "EndTime_us", "StartIteration", "EndIteration", "PipelinePool")
_SHARDS: Final = "retrieved_corpus_content.*.json"
_POOL: Final = re.compile(r"""["'\s]*\(([^()]*)\)["'\s]*""")


def read(source: Path, options: ImportOptions, log: ImportLog) -> Iterator[Record]:
    """The documents that are named, shard by shard, then one query a trace file.

    The windows are read twice, so that of the corpus no more than a shard is held.
    """
    if options.arrival not in ARRIVALS:
        raise ImportFailed(f"arrival {options.arrival!r} is not one of {', '.join(ARRIVALS)}")
    entries = list(_entries(source, Offsets(options.delays), log))
    shards = sorted(source.glob(_SHARDS))
    log.expect(*(file for _, file in entries), *shards)
    named = {doc for _, file in entries for row in _rows(file, ImportLog()) for doc in row.pool}
    known: set[str] = set()
    for shard in shards:
        yield from _documents(shard, named, known, log)
    for query, file in entries:
        rows = list(_rows(file, log))
        if not rows:
            log.reject(file, 0, "has no window that can be used", rows=0)
            continue
        yield from _records(query, rows, known, options.arrival, log)


class _Window(msgspec.Struct, frozen=True):
    start_us: int
    end_us: int
    pool: tuple[str, ...]
    iterations: dict[str, int]


def _entries(source: Path, offsets: Offsets, log: ImportLog) -> Iterator[tuple[Query, Path]]:
    """Query and trace file, by the map; only the file's name is followed. One that is left out
    has a delay of its own, too."""
    maps = sorted(source.glob(MAP))
    if not maps:
        raise ImportFailed(f"{source}: has no {MAP}; name the folder that holds it and {RESULTS}/")
    for path in maps:
        for query_id, entry in _json_object(path).items():
            offset_us = offsets.take()
            try:
                text, file = _entry(source, query_id, entry)
            except ValueError as error:
                log.reject(path, 0, error, rows=0)
            else:
                yield Query(query_id, text, (), offset_us), file


def _entry(source: Path, query_id: str, entry: Any) -> tuple[str, Path]:
    if not isinstance(entry, dict) or not isinstance(entry.get("query"), str):
        raise ValueError(f"query {query_id!r} has no text in query")
    name = entry.get("trace_file")
    if not query_id or not isinstance(name, str) or not name:
        raise ValueError(f"query {query_id!r} has no trace_file")
    plain = re.split(r"[/\\]", name)[-1]
    for file in (source / RESULTS / plain, source / plain):
        if file.is_file():
            return entry["query"], file
    raise ValueError(f"query {query_id!r}: {RESULTS}/{plain} is missing")


def _json_object(path: Path) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise disk_error(path, error) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ImportFailed(f"{path}: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ImportFailed(f"{path}: must be one JSON object")
    return found


def _documents(shard: Path, named: set[str], known: set[str], log: ImportLog) -> Iterator[Document]:
    log.files += 1
    try:
        texts = _json_object(shard)
    except ImportFailed as error:
        log.reject(shard, 0, str(error).removeprefix(f"{shard}: "), rows=0)
        return
    for doc_id in texts.keys() & named - known:
        if not isinstance(texts[doc_id], str):
            log.reject(shard, 0, f"document {doc_id!r} is not text", rows=0)
    # In the order of the file, so that the same corpus gives the same trace.
    for doc_id, text in texts.items():
        if doc_id in named and doc_id not in known and isinstance(text, str):
            known.add(doc_id)
            yield _document(doc_id, text)
    log.advance(shard.stat().st_size)


def _document(doc_id: str, text: str) -> Document:
    found = Document.of_text(url="", title="", text=text, mime=PLAIN)
    return Document(doc_id, "", "", text, found.text_sha256, found.n_chars, PLAIN)


def _rows(file: Path, log: ImportLog) -> Iterator[_Window]:
    for line, row in csv_rows(file, log, COLUMNS):
        try:
            yield _window(row)
        except ValueError as error:
            log.reject(file, line, error)


def _window(row: Mapping[str, str]) -> _Window:
    start_us, end_us = count_of(row, "StartTime_us"), count_of(row, "EndTime_us")
    if end_us < start_us:
        raise ValueError(f"EndTime_us {end_us} is before StartTime_us {start_us}")
    found = _POOL.fullmatch(row["PipelinePool"])
    if found is None:
        raise ValueError(f"PipelinePool is {row['PipelinePool'][:40]!r}; it must be (id,id,...)")
    names = (part.strip().strip("'\"") for part in found[1].split(","))
    first, last = count_of(row, "StartIteration"), count_of(row, "EndIteration")
    iterations = {"start_iteration": first, "end_iteration": last}
    return _Window(start_us, end_us, tuple(name for name in names if name), iterations)


def _records(
    query: Query, rows: list[_Window], known: set[str], arrival: str, log: ImportLog
) -> Iterator[Record]:
    """The query and its windows; the retrieval ends with the last of them."""
    yield query
    at_start = arrival == "start"
    rows.sort(key=lambda row: row.start_us if at_start else row.end_us)
    for seq, row in enumerate(rows):
        documents = tuple(doc for doc in row.pool if doc in known)
        if len(documents) < len(row.pool):
            log.warn("documents missing from the corpus", len(row.pool) - len(documents))
        meta: dict[str, int] = row.iterations | ({"window_end_us": row.end_us} if at_start else {})
        at_us = row.start_us if at_start else row.end_us
        kind = ArrivalKind.REPLACE
        yield Arrival(query.query_id, seq, kind, row.start_us, at_us, documents, meta=meta)
    last_us = max(row.end_us for row in rows)
    yield Arrival(query.query_id, len(rows), ArrivalKind.END, last_us, last_us)
