"""Stream2LLM run logs, ``run_metrics.csv``: what its own experiments measured."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from s2l.workloads.formats.csv_rows import csv_rows
from s2l.workloads.formats.fields import count_of, microseconds
from s2l.workloads.formats.import_log import ImportLog

TTFT: Final = "query_ttft"
E2E: Final = "query_e2e_latency"
_REQUIRED: Final = ("event_timestamp", "event_type", "query_id", "duration_secs")
_TRUE: Final = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One row. What the row leaves empty is None; ``duration_us`` is what the event measured."""

    timestamp_us: int
    event_type: str
    query_id: str
    request_id: str
    stream: bool | None
    concurrency: int | None
    duration_us: int | None
    details: str
    request_size: int | None
    concurrent_requests: int | None
    replay_rate: str
    prev_event_type: str
    num_documents: int | None
    pipeline_pool_change: str


def read_run_log(path: Path, log: ImportLog) -> Iterator[RunEvent]:
    """The events of a log, in its order; bad rows are named in ``log`` and left out.

    Raises:
        ImportFailed: a row is bad, and the log is strict.
        DiskError: the file cannot be read.
    """
    log.expect(path)
    for line, row in csv_rows(path, log, _REQUIRED):
        try:
            yield _event(row)
        except ValueError as error:
            log.reject(path, line, error)


def _event(row: Mapping[str, str]) -> RunEvent:
    if not row["event_type"]:
        raise ValueError("event_type is empty")
    return RunEvent(
        timestamp_us=microseconds(row, "event_timestamp", 1e6),
        event_type=row["event_type"],
        query_id=row["query_id"],
        request_id=row.get("request_id", ""),
        stream=_flag(row, "stream"),
        concurrency=_number(row, "concurrency"),
        duration_us=microseconds(row, "duration_secs", 1e6) if row["duration_secs"] else None,
        details=row.get("details", ""),
        request_size=_number(row, "request_size"),
        concurrent_requests=_number(row, "concurrent_requests"),
        replay_rate=row.get("replay_rate", ""),
        prev_event_type=row.get("prev_event_type", ""),
        num_documents=_number(row, "num_documents"),
        pipeline_pool_change=row.get("pipeline_pool_change", ""),
    )


def _number(row: Mapping[str, str], key: str) -> int | None:
    text = row.get(key) or ""
    return count_of({key: text.removesuffix(".0")}, key) if text else None


def _flag(row: Mapping[str, str], key: str) -> bool | None:
    text = (row.get(key) or "").strip().lower()
    if text and text not in _TRUE:
        raise ValueError(f"{key} is {text!r}; it must be true or false")
    return _TRUE.get(text)
