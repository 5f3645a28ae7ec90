"""Writes a run folder: tables first, ``run.json`` last, each whole or not at all."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from s2l.replayer.monitor import ClientSample
from s2l.replayer.record import RequestRecord
from s2l.replayer.run import (
    CHUNK_SCHEMA,
    CLIENT_SCHEMA,
    QUERY_SCHEMA,
    REQUEST_SCHEMA,
    RunError,
    RunInfo,
)
from s2l.serving_adapter.base import Usage
from s2l.workloads.durable import durable_file
from s2l.workloads.query import Query


class RunNotWritten(RunError):
    """The disk did not take the run."""


def write_run(
    path: Path,
    info: RunInfo,
    *,
    queries: Iterable[Query],
    records: Sequence[RequestRecord],
    samples: Sequence[ClientSample],
) -> None:
    """Write a run.

    Raises:
        RunNotWritten: the disk does not take it; files written before stay.
    """
    tables = {
        "queries.parquet": (QUERY_SCHEMA, _query_rows(queries)),
        "requests.parquet": (REQUEST_SCHEMA, map(_request_row, records)),
        "chunks.parquet": (CHUNK_SCHEMA, _chunk_rows(records)),
        "client.parquet": (CLIENT_SCHEMA, map(_fields_of(CLIENT_SCHEMA), samples)),
    }
    try:
        path.mkdir(parents=True, exist_ok=True)
        for name, (schema, rows) in tables.items():
            with durable_file(path / name) as file:
                pq.write_table(pa.Table.from_pylist(list(rows), schema), file, compression="zstd")
        with durable_file(path / "run.json") as file:
            file.write(msgspec.json.format(msgspec.json.encode(info), indent=2))
    except OSError as error:
        raise RunNotWritten(f"{path}: cannot write the run: {error.strerror or error}") from error


def _query_rows(queries: Iterable[Query]) -> Iterator[dict[str, Any]]:
    for query in queries:
        yield {"query_id": query.query_id, "text": query.text, "answers": list(query.answers)}


def _request_row(record: RequestRecord) -> dict[str, Any]:
    usage = record.usage or Usage(None, None, None)
    times = record.token_us
    own = _fields_of(REQUEST_SCHEMA, skip_missing=True)(record)
    return own | {
        "first_token_us": times[0] if times else None,
        "last_token_us": times[-1] if times else None,
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "invalidated_tokens": usage.invalidated_tokens,
        "output_tokens": usage.output_tokens,
        "token_source": "usage" if usage.output_tokens is not None else None,
        "output_text": "".join(record.texts),
    }


def _chunk_rows(records: Iterable[RequestRecord]) -> Iterator[dict[str, Any]]:
    fields = _fields_of(CHUNK_SCHEMA, skip_missing=True)
    for record in records:
        for chunk in record.chunks:
            yield {"request_id": record.request_id, **fields(chunk)}


def _fields_of(
    schema: pa.Schema, *, skip_missing: bool = False
) -> Callable[[object], dict[str, Any]]:
    """A function from a record to the row of its attributes that the schema names."""

    def row(record: object) -> dict[str, Any]:
        names = [n for n in schema.names if not skip_missing or hasattr(record, n)]
        return {name: getattr(record, name) for name in names}

    return row
