"""Mooncake, AIPerf and vLLM ``timed_trace`` JSONL: times in ms, lengths with blocks, or texts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from s2l.workloads.document import Document
from s2l.workloads.formats.base import ExportOptions, ImportOptions, Record
from s2l.workloads.formats.fields import count_of, offset_us, text_of, units
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.ready_requests import (
    ReadyRequest,
    known_output,
    other_meta,
    text_of_document,
)
from s2l.workloads.formats.request_files import read_requests, write_requests
from s2l.workloads.formats.requests import Request, check_blocks, message
from s2l.workloads.trace import Trace

_MS: Final = 1000
_KNOWN: Final = frozenset(
    {"timestamp", "delay", "session_id", "input_length", "output_length", "hash_ids"}
    | {"text_input", "messages"}
)


def read(source: Path, options: ImportOptions, log: ImportLog) -> Iterator[Record]:
    """One query a row. A row with ``delay`` in place of a time follows its session's last row."""
    sessions: dict[str, int] = {}
    return read_requests(source, log, lambda row, query_id: _request(row, query_id, sessions))


def _request(row: dict[str, Any], query_id: str, sessions: dict[str, int]) -> Request:
    meta = {key: value for key, value in row.items() if key not in _KNOWN}
    if row.get("output_length") is not None:
        meta["output_tokens"] = count_of(row, "output_length")
    at_us = _offset_us(row, sessions, meta)
    if row.get("text_input") is not None:
        return Request(query_id, at_us, text_of(row, "text_input"), meta=meta)
    if row.get("messages") is not None:
        before, text, roles = _messages(row["messages"])
        return Request(query_id, at_us, text, before=before, meta=meta | {"roles": roles})
    tokens = count_of(row, "input_length")
    blocks = check_blocks(row["hash_ids"], tokens) if row.get("hash_ids") is not None else ()
    return Request(query_id, at_us, None, tokens, blocks, meta=meta)


def _offset_us(row: dict[str, Any], sessions: dict[str, int], meta: dict[str, Any]) -> int:
    session = row.get("session_id")
    if session is not None:
        meta["session_id"] = session
    delay_us = offset_us(row, "delay", _MS) if row.get("delay") is not None else None
    if delay_us is not None:
        meta["delay_us"] = delay_us
    if row.get("timestamp") is not None:
        at_us = offset_us(row, "timestamp", _MS)
    elif session is not None and (delay_us is not None or str(session) not in sessions):
        meta["timestamp"] = None
        at_us = sessions.get(str(session), 0) + (delay_us or 0)
    else:
        raise ValueError("needs a timestamp (ms), or a session_id with a delay (ms)")
    if session is not None:
        sessions[str(session)] = at_us
    return at_us


def _messages(found: object) -> tuple[tuple[Document, ...], str, list[str]]:
    if not isinstance(found, list) or not found:
        raise ValueError("messages must be a list with at least one message")
    pairs = [(_part(one, "role"), _part(one, "content")) for one in found]
    before = tuple(message(role, text) for role, text in pairs[:-1])
    return before, pairs[-1][1], [role for role, _ in pairs]


def _part(found: object, key: str) -> str:
    if not isinstance(found, dict) or not isinstance(found.get(key), str):
        raise ValueError(f"each of messages must have its {key} as text")
    text: str = found[key]
    return text


def write(trace: Trace, out: Path, options: ExportOptions) -> int:
    """One row a query: lengths and blocks where it is made of them, else its text."""
    return write_requests(trace, out, options, _row)


def _row(request: ReadyRequest) -> dict[str, Any]:
    meta = other_meta(request.query)
    output, roles = known_output(request.query), meta.pop("roles", None)
    delay_us, has_time = meta.pop("delay_us", None), meta.pop("timestamp", "") is not None
    row: dict[str, Any] = {"timestamp": units(request.offset_us, _MS)} if has_time else {}
    row |= meta if delay_us is None else meta | {"delay": units(delay_us, _MS)}
    row |= _input(request, roles)
    return row if output is None else row | {"output_length": output}


def _input(request: ReadyRequest, roles: list[str] | None) -> dict[str, Any]:
    if roles is not None and len(roles) == len(request.documents) + 1:
        texts = [*map(text_of_document, request.documents), request.query.text]
        said = [{"role": r, "content": text} for r, text in zip(roles, texts, strict=True)]
        return {"messages": said}
    if not request.is_synthetic:
        return {"text_input": request.prompt}
    row: dict[str, Any] = {"input_length": request.input_tokens}
    blocks = request.blocks
    return row if blocks is None else row | {"hash_ids": blocks}
