"""Writing imported RAGPulse traces as RAGPulse again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from s2l.workloads.errors import ExportFailed, disk_error
from s2l.workloads.formats.base import ExportOptions
from s2l.workloads.formats.fields import units
from s2l.workloads.formats.json_lines import write_lines
from s2l.workloads.formats.ragpulse import COMPONENTS, TRACE_FILE
from s2l.workloads.formats.ready_requests import ReadyRequest, ready_requests
from s2l.workloads.formats.request_files import row_id
from s2l.workloads.trace import Trace

LOSES: Final = (
    "traces that are not made of its components, and the times of passages (one gap for all)"
)
_STEMS: Final = {component.id_key.removesuffix("_id"): component for component in COMPONENTS}
_S: Final = 1_000_000


def write(trace: Trace, out: Path, options: ExportOptions) -> int:
    """A folder with the requests and the five files of lengths."""
    lengths: dict[str, dict[int, int]] = {component.key: {} for component in COMPONENTS}
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(out, error) from None
    count = write_lines(out / TRACE_FILE, _rows(trace, options, lengths))
    for component in COMPONENTS:
        known = sorted(lengths[component.key].items())
        rows = ({component.id_key: block, "token_length": n} for block, n in known)
        write_lines(out / component.file, rows)
    return count


def _rows(
    trace: Trace, options: ExportOptions, lengths: dict[str, dict[int, int]]
) -> Iterator[dict[str, Any]]:
    for number, request in enumerate(ready_requests(trace, options), start=1):
        meta, query = request.query.meta, request.query
        row = {
            "timestamp": str(units(query.offset_us, _S)),
            "input_length": meta.get("input_tokens", request.input_tokens),
            "output_length": meta.get("output_tokens", 0),
            "hash_ids": _blocks(request, lengths),
        }
        row |= {"session_id": meta["session_id"]} if "session_id" in meta else {}
        own = query.query_id
        yield row if own == row_id(number) else row | {"query_id": own}


def _blocks(request: ReadyRequest, lengths: dict[str, dict[int, int]]) -> dict[str, list[int]]:
    blocks: dict[str, list[int]] = {component.key: [] for component in COMPONENTS}
    parts = [(one.doc_id, one.meta.get("tokens")) for one in request.documents]
    meta = request.query.meta
    if "user_input" in meta:
        parts.append((meta["user_input"], meta.get("tokens")))
    for name, tokens in parts:
        stem, _, number = str(name).rpartition("-")
        if stem not in _STEMS or not number.isdecimal() or not isinstance(tokens, int):
            raise ExportFailed(
                f"document {name!r} is no component of a RAGPulse request; use timed-trace"
            )
        key = _STEMS[stem].key
        blocks[key].append(int(number))
        lengths[key][int(number)] = tokens
    return blocks
