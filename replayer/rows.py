"""Records as columns: what the run's tables hold of them."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from s2l.replayer.monitor import ClientSample
from s2l.replayer.record import RequestRecord
from s2l.replayer.run import CHUNK_SCHEMA, CLIENT_SCHEMA, QUERY_SCHEMA, REQUEST_SCHEMA
from s2l.serving_adapter.base import Usage
from s2l.workloads.query import Query

_NO_USAGE = Usage(None, None, None)


def request_rows(records: Sequence[RequestRecord]) -> pa.RecordBatch:
    """The rows of ``requests.parquet``."""
    usages = [r.usage or _NO_USAGE for r in records]
    columns: dict[str, Any] = {
        "query_id": [r.query.query_id for r in records],
        "first_token_us": [r.token_us[0] if r.token_us else None for r in records],
        "last_token_us": [r.token_us[-1] if r.token_us else None for r in records],
        "token_us": _lists([r.token_us for r in records], np.int64),
        "token_n": _lists([r.token_n for r in records], np.int32),
        "token_source": ["usage" if u.output_tokens is not None else None for u in usages],
        "output_text": ["".join(r.texts) for r in records],
    }
    for name in (
        "prompt_tokens",
        "cached_tokens",
        "invalidated_tokens",
        "output_tokens",
        "discarded_tokens",
        "reasoning_tokens",
    ):
        columns[name] = [getattr(usage, name) for usage in usages]
    return _batch(REQUEST_SCHEMA, records, columns)


def chunk_rows(records: Sequence[RequestRecord]) -> pa.RecordBatch:
    """The rows of ``chunks.parquet`` of these requests."""
    of = [(record, chunk) for record in records for chunk in record.query.chunks]
    columns: dict[str, Any] = {
        "request_id": [record.request_id for record, _ in of],
        "arrival_intended_us": [r.start_intended_us + c.arrival_us for r, c in of],
        "send_intended_us": [r.start_intended_us + c.send_us for r, c in of],
        "handed_us": [r.handed_us[c.seq] if r.handed_us else None for r, c in of],
        "sent_us": [r.sent_us[c.seq] if r.sent_us else None for r, c in of],
        "prefilled_us": [r.prefilled_us[c.seq] if r.prefilled_us else None for r, c in of],
    }
    return _batch(CHUNK_SCHEMA, [chunk for _, chunk in of], columns)


def client_rows(samples: Sequence[ClientSample]) -> pa.RecordBatch:
    """The rows of ``client.parquet``."""
    return _batch(CLIENT_SCHEMA, samples, {})


def query_rows(queries: Iterable[Query]) -> pa.RecordBatch:
    """The rows of ``queries.parquet``."""
    return _batch(QUERY_SCHEMA, list(queries), {})


def _batch(schema: pa.Schema, items: Sequence[object], columns: dict[str, Any]) -> pa.RecordBatch:
    """A batch of the columns given, and of the items' attributes for all others."""
    arrays = []
    for field in schema:
        values = columns.get(field.name)
        if values is None:
            values = [getattr(item, field.name) for item in items]
        arrays.append(values if isinstance(values, pa.Array) else pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _lists(lists: Sequence[Sequence[int]], kind: type) -> pa.Array:
    """Lists of integers, without a Python object looked at twice."""
    ends = np.cumsum([0, *map(len, lists)], dtype=np.int32)
    values: npt.NDArray[Any] = np.fromiter(chain.from_iterable(lists), kind, count=int(ends[-1]))
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(values))
