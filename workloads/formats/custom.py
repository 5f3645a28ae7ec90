"""vLLM ``custom`` JSONL: ``prompt`` and ``output_tokens``, without times."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from s2l.workloads.formats.base import ExportOptions, ImportOptions, Record
from s2l.workloads.formats.fields import count_of, text_of
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.ready_requests import ReadyRequest, known_output, other_meta
from s2l.workloads.formats.request_files import read_requests, write_requests
from s2l.workloads.formats.requests import Request
from s2l.workloads.trace import Trace


def read(source: Path, options: ImportOptions, log: ImportLog) -> Iterator[Record]:
    """One query a row, all of them at the start."""
    return read_requests(source, log, _request)


def _request(row: dict[str, Any], query_id: str) -> Request:
    meta = {key: value for key, value in row.items() if key != "prompt"}
    if row.get("output_tokens") is not None:
        meta["output_tokens"] = count_of(row, "output_tokens")
    return Request(query_id, 0, text_of(row, "prompt"), meta=meta)


def write(trace: Trace, out: Path, options: ExportOptions) -> int:
    """One row a query, its whole context in the prompt."""
    return write_requests(trace, out, options, _row)


def _row(request: ReadyRequest) -> dict[str, Any]:
    row = other_meta(request.query) | {"prompt": request.prompt}
    output = known_output(request.query)
    return row if output is None else row | {"output_tokens": output}
