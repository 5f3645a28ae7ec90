"""A Stream2LLM run log, ``run_metrics.csv``, as a run folder that reports and comparisons read."""

from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from s2l.replayer.run import (
    CHUNK_SCHEMA,
    CLIENT_SCHEMA,
    QUERY_SCHEMA,
    RUN_FORMAT,
    Counts,
    Finding,
    PassWindow,
    RunError,
    RunInfo,
    Target,
    TraceRef,
    Validity,
)
from s2l.reports.run_log_requests import START, logged_requests, request_table
from s2l.workloads.durable import durable_file, write_durably
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.stream2llm_runs import E2E, TTFT

_ORIGIN: Final = "stream2llm run log"
_NOT_LOGGED: Final = "not logged"
_UNKNOWN: Final = (
    "intended start times, prompt and output tokens, answers, the trace, the server and its "
    "settings, and how late the client was"
)


def intended_times_known(info: RunInfo) -> bool:
    """Whether a run says when its requests were due; a run made from a log of others does not."""
    return info.schedule.get("intended_times") != _NOT_LOGGED


def import_run_log(
    file: Path, out: Path, log: ImportLog, *, delivery: str | None = None
) -> RunInfo:
    """Write the requests of a log as the run folder ``out``; bad rows are named in ``log``.

    Args:
        file: the log.
        out: a folder that is not there yet.
        log: counts rows; a strict one makes the first bad row fatal.
        delivery: of requests whose rows do not say whether they streamed.

    Raises:
        RunError: there is no request in it, or ``out`` is there already.
        TraceError: the file cannot be read, or a row is bad and the log is strict.
    """
    if out.exists():
        raise RunError(f"{out}: is there already; name a new folder")
    requests = logged_requests(file, log, delivery)
    if not requests:
        raise RunError(f"{file}: no request in it; a run log has rows of {START}, {TTFT} and {E2E}")
    table = request_table(requests)
    info = _info(file, table, _settings(file, delivery))
    out.mkdir(parents=True)
    tables = {
        "queries.parquet": _queries(table),
        "requests.parquet": table,
        "chunks.parquet": CHUNK_SCHEMA.empty_table(),
        "client.parquet": CLIENT_SCHEMA.empty_table(),
    }
    for name, rows in tables.items():
        with durable_file(out / name) as opened:
            pq.write_table(rows, opened, compression="zstd")
    write_durably(out / "run.json", msgspec.json.format(msgspec.json.encode(info), indent=2))
    return info


def _queries(requests: pa.Table) -> pa.Table:
    ids = sorted(set(requests["query_id"].to_pylist()))
    rows = [{"query_id": one, "text": one, "answers": []} for one in ids]
    return pa.Table.from_pylist(rows, QUERY_SCHEMA)


def _settings(file: Path, delivery: str | None) -> dict[str, Any]:
    with file.open("rb") as opened:
        digest = sha256(opened.read()).hexdigest()
    return {"file": file.name, "file_sha256": digest, "delivery": delivery}


def _info(file: Path, requests: pa.Table, settings: dict[str, Any]) -> RunInfo:
    errors = Counter(requests["error_type"].to_pylist())
    succeeded = errors.pop(None, 0)
    rates = sorted({rate for rate in requests["rate"].to_pylist() if rate is not None})
    finding = Finding(
        check="origin", severity="degraded", text=f"{file.name} does not say: {_UNKNOWN}"
    )
    return RunInfo(
        format=RUN_FORMAT,
        created_utc="",
        command=["s2l", "import-run", file.name],
        options=settings,
        seed=0,
        trace=TraceRef(name=f"{_ORIGIN} {file.name}", path="", sha256=""),
        target=Target(url="", adapter=_ORIGIN),
        host={},
        packages={"s2l": version("s2l")},
        schedule={
            "rate_qps": rates[0] if len(rates) == 1 else None,
            "rates_qps": rates,
            "intended_times": _NOT_LOGGED,
        },
        warmup={},
        passes=list(_passes(requests)),
        validity=Validity(verdict="degraded", findings=[finding]),
        counts=Counts(
            planned=requests.num_rows,
            sent=requests.num_rows,
            succeeded=succeeded,
            unsent=0,
            failed={str(kind): n for kind, n in errors.items()},
        ),
    )


def _passes(requests: pa.Table) -> Iterable[PassWindow]:
    grouped = requests.group_by("delivery").aggregate(
        [("start_intended_us", "min"), ("end_us", "max"), ("start_intended_us", "max")]
    )
    for row in sorted(grouped.to_pylist(), key=lambda row: str(row["delivery"])):
        end = row["end_us_max"]
        yield PassWindow(
            delivery=row["delivery"],
            start_us=row["start_intended_us_min"],
            end_us=row["start_intended_us_max"] if end is None else end,
        )
