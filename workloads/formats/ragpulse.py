"""RAGPulse: requests as blocks of five components, with their lengths in side files."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.errors import ImportFailed
from s2l.workloads.formats.base import ImportOptions, PlannedDocument, PlannedQuery, Record
from s2l.workloads.formats.fields import count_of, offset_us
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.json_lines import parsed_lines
from s2l.workloads.formats.request_files import RowIds, row_id
from s2l.workloads.query import Query

TRACE_FILE: Final = "0_trace.jsonl"
_S: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the prompt: its key in ``hash_ids``, its side file and that file's id."""

    key: str
    file: str
    id_key: str


COMPONENTS: Final = (
    Component("sys_prompt", "1_sys_prompt.jsonl", "sys_prompt_id"),
    Component("history", "3_history.jsonl", "history_id"),
    Component("passages_ids", "2_passages.jsonl", "passage_id"),
    Component("web_search", "5_web_search.jsonl", "web_search_id"),
    Component("user_input", "4_user_input.jsonl", "user_input_id"),
)
"""In the order of the prompt."""

AT_ONCE: Final = ("sys_prompt", "history")
RETRIEVED: Final = ("passages_ids", "web_search")

Lengths = Mapping[str, Mapping[int, int]]


def read(source: Path, options: ImportOptions, log: ImportLog) -> Iterator[Record]:
    """One query a row: what was there before it comes at once, then one passage after another.

    The trace says which passages there were and not when they came: they come at the query's
    start, or ``passage_gap_us`` apart.
    """
    folder = source if source.is_dir() else source.parent
    trace = _named(folder, TRACE_FILE) if source.is_dir() else source
    sides = [_named(folder, component.file) for component in COMPONENTS]
    log.expect(trace, *sides)
    lengths = {c.key: _lengths(file, c, log) for c, file in zip(COMPONENTS, sides, strict=True)}
    log.set_aside()
    ids = RowIds()

    def parse(row: dict[str, Any], number: int) -> _Row:
        return _row(row, row_id(number), lengths, ids)

    for row in parsed_lines(trace, log, parse):
        yield from _records(row, options.passage_gap_us)


@dataclass(frozen=True, slots=True)
class _Row:
    query: Query
    question: PlannedDocument | None
    at_once: tuple[PlannedDocument, ...]
    passages: tuple[PlannedDocument, ...]


def _named(folder: Path, name: str) -> Path:
    found = sorted(folder.glob(f"*{name}"))
    if len(found) != 1:
        how = "has none" if not found else f"has {len(found)}"
        raise ImportFailed(f"{folder}: must hold one file *{name}; it {how}")
    return found[0]


def _lengths(file: Path, component: Component, log: ImportLog) -> dict[int, int]:
    def parse(row: dict[str, Any], number: int) -> tuple[int, int]:
        return count_of(row, component.id_key), count_of(row, "token_length")

    return dict(parsed_lines(file, log, parse))


def _row(row: dict[str, Any], query_id: str, lengths: Lengths, ids: RowIds) -> _Row:
    blocks = row.get("hash_ids")
    if not isinstance(blocks, dict):
        raise ValueError("hash_ids must be an object of lists")
    parts = {c.key: _documents(blocks, c, lengths[c.key]) for c in COMPONENTS}
    meta = {"output_tokens": count_of(row, "output_length")}
    meta |= {"input_tokens": count_of(row, "input_length")}
    meta |= {key: row[key] for key in ("session_id",) if key in row}
    own = str(row.get("query_id", query_id))
    query = Query(own, "", (), offset_us(row, "timestamp", _S), meta)
    if len(parts["user_input"]) > 1:
        raise ValueError("user_input has more than one block")
    question = next(iter(parts["user_input"]), None)
    ids.take(own)
    at_once = (doc for key in AT_ONCE for doc in parts[key])
    passages = (doc for key in RETRIEVED for doc in parts[key])
    return _Row(query, question, tuple(at_once), tuple(passages))


def _documents(
    blocks: Mapping[str, Any], component: Component, lengths: Mapping[int, int]
) -> tuple[PlannedDocument, ...]:
    found = blocks.get(component.key, [])
    if not isinstance(found, list):
        raise ValueError(f"hash_ids.{component.key} must be a list")
    if not all(isinstance(block, int) for block in found):
        raise ValueError(f"hash_ids.{component.key} must be a list of whole numbers")
    if unknown := [block for block in found if block not in lengths]:
        raise ValueError(f"{component.id_key} {unknown[0]!r} is not in {component.file}")
    stem = component.id_key.removesuffix("_id")
    names = ((f"{stem}-{block}", lengths[block]) for block in found)
    return tuple(PlannedDocument(name, name, tokens) for name, tokens in names)


def _records(row: _Row, gap_us: int) -> Iterator[Record]:
    yield from row.at_once + row.passages
    yield _question(row)
    query_id, at_us = row.query.query_id, 0
    steps = [row.at_once, *((passage,) for passage in row.passages)]
    steps = steps if row.at_once else steps[1:]
    for seq, step in enumerate(steps):
        start_us, at_us = at_us, (seq if row.at_once else seq + 1) * gap_us
        ids = tuple(document.doc_id for document in step)
        yield Arrival(query_id, seq, ArrivalKind.APPEND, start_us, at_us, ids)
    yield Arrival(query_id, len(steps), ArrivalKind.END, at_us, at_us)


def _question(row: _Row) -> Record:
    if row.question is None:
        return row.query
    planned = row.question
    made = {"tokens": planned.tokens, "synthetic": True, "user_input": planned.doc_id}
    query = Query(row.query.query_id, "", (), row.query.offset_us, {**row.query.meta, **made})
    return PlannedQuery(query, planned.key, planned.tokens)
