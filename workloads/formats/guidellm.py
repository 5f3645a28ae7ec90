"""GuideLLM JSONL: prompts with token counts and times in seconds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from s2l.workloads.formats.base import ExportOptions, ImportOptions, Record
from s2l.workloads.formats.fields import count_of, offset_us, text_of, units
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.ready_requests import ReadyRequest, known_output, other_meta
from s2l.workloads.formats.request_files import read_requests, write_requests
from s2l.workloads.formats.requests import Request
from s2l.workloads.trace import Trace

_S: Final = 1_000_000
_KNOWN: Final = frozenset(
    {"prompt", "prompt_tokens_count", "output_tokens_count", "relative_timestamp"}
)


def read(source: Path, options: ImportOptions, log: ImportLog) -> Iterator[Record]:
    """One query a row; a row without a prompt gets one of its length."""
    return read_requests(source, log, _request)


def _request(row: dict[str, Any], query_id: str) -> Request:
    meta = {key: value for key, value in row.items() if key not in _KNOWN}
    has_time = row.get("relative_timestamp") is not None
    at_us = offset_us(row, "relative_timestamp", _S) if has_time else 0
    if row.get("output_tokens_count") is not None:
        meta["output_tokens"] = count_of(row, "output_tokens_count")
    if row.get("prompt") is None:
        return Request(query_id, at_us, None, count_of(row, "prompt_tokens_count"), meta=meta)
    if row.get("prompt_tokens_count") is not None:
        meta["tokens"] = count_of(row, "prompt_tokens_count")
    return Request(query_id, at_us, text_of(row, "prompt"), meta=meta)


def write(trace: Trace, out: Path, options: ExportOptions) -> int:
    """One row a query; the prompt is left out where it was made for its length alone."""
    return write_requests(trace, out, options, _row)


def _row(request: ReadyRequest) -> dict[str, Any]:
    row = other_meta(request.query) | {"relative_timestamp": units(request.offset_us, _S)}
    row |= {} if request.is_synthetic else {"prompt": request.prompt}
    row |= {"prompt_tokens_count": request.input_tokens}
    output = known_output(request.query)
    return row if output is None else row | {"output_tokens_count": output}
