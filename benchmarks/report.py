"""``s2l report`` on a run of a million requests with 32 token times each: time and memory.

    python benchmarks/report.py [--quick] [--requests N]

The run is written first, batch by batch: half of the requests stream their context in four chunks,
half wait for it; a tenth of a per cent fails. The report is then made by the command itself in a
process of its own, whose peak memory is that of its resource usage. The last line is one JSON
object.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from s2l.replayer.run import (
    CHUNK_SCHEMA,
    CLIENT_SCHEMA,
    QUERY_SCHEMA,
    REQUEST_SCHEMA,
    RUN_FORMAT,
    SERVER_SCHEMA,
    Counts,
    PassWindow,
    RunInfo,
    Target,
    TraceRef,
    Validity,
)

TOKENS = 32
CHUNKS = 4
BATCH = 50_000
RATE_QPS = 1_000.0
WORDS = np.array([f"word{n}" for n in range(400)] + ["the", "of", "a", "and"])
DELIVERIES = ("stream", "wait")
TEXTS = 4_096
"""Different answers; they are spread over the requests."""


def main() -> None:
    """Write the run, report on it, and print the figures."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="20,000 requests")
    options.add_argument("--requests", type=int, default=1_000_000)
    chosen = options.parse_args()
    requests = 20_000 if chosen.quick else chosen.requests
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        started = time.perf_counter()
        write_run(path, requests // len(DELIVERIES))
        print(f"run of {requests:,} requests written in {time.perf_counter() - started:.0f} s")
        found = measure(path) | {"requests": requests, "quick": chosen.quick}
        print(json.dumps(found))


def measure(path: Path) -> dict[str, Any]:
    """Seconds and peak memory of ``s2l report``, and how large the page became."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "s2l", "report", str(path), "--json"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"s2l report ended with {process.returncode}")
    return {
        "seconds": round(time.perf_counter() - started, 1),
        "peak_gib": round(usage.ru_maxrss / 2**20, 2),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 1),
        "page_mb": round((path / "report.html").stat().st_size / 1e6, 2),
    }


def write_run(path: Path, n_queries: int) -> None:
    """Write the folder batch by batch."""
    path.mkdir(parents=True)
    random = np.random.default_rng(1)
    words = random.choice(WORDS, (TEXTS, TOKENS))
    texts = pa.array([" ".join(row) for row in words])
    answers = [" ".join(row[3:5]) for row in words[:, :]]
    _write_queries(path, n_queries, answers)
    span_us = int(n_queries / RATE_QPS * 1e6) + 60_000_000
    with (
        pq.ParquetWriter(path / "requests.parquet", REQUEST_SCHEMA, compression="zstd") as requests,
        pq.ParquetWriter(path / "chunks.parquet", CHUNK_SCHEMA, compression="zstd") as chunks,
    ):
        for position, delivery in enumerate(DELIVERIES):
            for first in range(0, n_queries, BATCH):
                numbers = np.arange(first, min(first + BATCH, n_queries))
                batch = _Batch(delivery, numbers, position * span_us, random)
                requests.write_table(batch.requests(texts))
                chunks.write_table(batch.chunks())
    _write_samples(path, span_us)
    (path / "run.json").write_bytes(msgspec.json.encode(_info(n_queries, span_us)))


class _Batch:
    """Requests of one delivery, one after another at ``RATE_QPS``."""

    def __init__(
        self, delivery: str, numbers: np.ndarray, offset_us: int, random: np.random.Generator
    ) -> None:
        n = numbers.size
        self.delivery, self.numbers, self.n = delivery, numbers, n
        self.start = offset_us + (numbers * (1e6 / RATE_QPS)).astype(np.int64)
        gaps = random.integers(50_000, 900_000, (n, CHUNKS))
        self.arrivals = self.start[:, None] + np.cumsum(gaps, axis=1)
        self.due = self.arrivals[:, -1]
        median_s = 0.08 if delivery == "stream" else 0.3
        self.first = self.due + (random.lognormal(np.log(median_s), 0.5, n) * 1e6).astype(np.int64)
        gaps = random.gamma(4, 5_000, (n, TOKENS)).astype(np.int64)
        gaps[:, 0] = 0
        self.tokens = self.first[:, None] + np.cumsum(gaps, axis=1)
        self.lag = random.integers(20, 900, n)
        self.failed = random.random(n) < 0.001
        self.text = random.integers(0, TEXTS, n)

    def requests(self, texts: pa.Array) -> pa.Table:
        """With the columns of ``REQUEST_SCHEMA``."""
        fine, n = ~self.failed, self.n
        offsets = np.r_[0, np.cumsum(np.where(fine, TOKENS, 0))].astype(np.int32)
        n_tokens = int(offsets[-1])
        ones = pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.ones(n_tokens, np.int32)))
        error = np.where(self.failed, "timeout", None)
        columns: dict[str, Any] = {
            "request_id": [f"{self.delivery}-{number}" for number in self.numbers],
            "query_id": [f"q{number}" for number in self.numbers],
            "delivery": pa.repeat(self.delivery, n),
            "rate": pa.repeat(RATE_QPS, n),
            "start_intended_us": self.start,
            "start_us": self.start + self.lag,
            "context_intended_us": self.due,
            "context_us": self.due + self.lag,
            "first_token_us": pa.array(self.first, mask=self.failed),
            "last_token_us": pa.array(self.tokens[:, -1], mask=self.failed),
            "end_us": self.tokens[:, -1] + 300,
            "token_us": pa.ListArray.from_arrays(
                pa.array(offsets), pa.array(self.tokens[fine].ravel())
            ),
            "token_n": ones,
            "prompt_tokens": pa.array(np.full(n, 900, np.int32), mask=self.failed),
            "cached_tokens": pa.array(
                np.full(n, 800 if self.delivery == "stream" else 0, np.int32), mask=self.failed
            ),
            "invalidated_tokens": pa.array(np.zeros(n, np.int32), mask=self.failed),
            "output_tokens": pa.array(np.full(n, TOKENS, np.int32), mask=self.failed),
            "token_source": pa.repeat("usage", n),
            "output_text": self._unlike(texts.take(pa.array(self.text))),
            "finish_reason": pa.repeat("length", n),
            "error_type": pa.array(error, pa.string()),
            "error": pa.array(error, pa.string()),
        }
        return _table(columns, REQUEST_SCHEMA, n)

    def _unlike(self, texts: pa.Array) -> pa.Array:
        """Each text with a number of its own, so that no two answers are the same."""
        return pc.binary_join_element_wise(texts, pa.array(self.numbers).cast(pa.string()), " ")

    def chunks(self) -> pa.Table:
        """With the columns of ``CHUNK_SCHEMA``."""
        n, arrivals = self.n * CHUNKS, self.arrivals.ravel()
        due = np.repeat(self.due, CHUNKS)
        send = arrivals if self.delivery == "stream" else due
        documents = [f"doc-{number % 5_000}" for number in range(n)]
        columns: dict[str, Any] = {
            "request_id": [f"{self.delivery}-{n}" for n in self.numbers for _ in range(CHUNKS)],
            "seq": np.tile(np.arange(CHUNKS, dtype=np.int32), self.n),
            "kind": pa.repeat("append", n),
            "arrival_intended_us": arrivals,
            "send_intended_us": send,
            "sent_us": send + np.repeat(self.lag, CHUNKS),
            "prefilled_us": send + 40_000,
            "tokens": pa.repeat(pa.scalar(220, pa.int32()), n),
            "doc_ids": pa.ListArray.from_arrays(
                pa.array(np.arange(n + 1, dtype=np.int32)), pa.array(documents)
            ),
        }
        return _table(columns, CHUNK_SCHEMA, n)


def _table(columns: dict[str, Any], schema: pa.Schema, n: int) -> pa.Table:
    """With nulls for the columns that are not given."""
    arrays = [
        pa.array(columns[field.name], field.type)
        if field.name in columns and not isinstance(columns[field.name], pa.Array)
        else columns.get(field.name, pa.nulls(n, field.type)).cast(field.type)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


def _write_queries(path: Path, n_queries: int, answers: list[str]) -> None:
    columns = {
        "query_id": [f"q{number}" for number in range(n_queries)],
        "text": [f"Which one is number {number}?" for number in range(n_queries)],
        "answers": [[answers[number % TEXTS]] for number in range(n_queries)],
    }
    pq.write_table(pa.table(columns, schema=QUERY_SCHEMA), path / "queries.parquet")


def _write_samples(path: Path, span_us: int) -> None:
    times = [(name, at * span_us) for at, name in enumerate(DELIVERIES)]
    client = [
        {
            "delivery": name,
            "time_us": start + second * 1_000_000,
            "loop_lag_us": 100 + second % 700,
            "cpu_s": second * 0.5,
            "rss_bytes": 100_000_000,
        }
        for name, start in times
        for second in range(span_us // 1_000_000)
    ]
    server = [
        {"delivery": row["delivery"], "time_us": row["time_us"], "name": name, "value": 3.0}
        for row in client
        for name in ("running", "waiting")
    ]
    pq.write_table(pa.Table.from_pylist(client, CLIENT_SCHEMA), path / "client.parquet")
    pq.write_table(pa.Table.from_pylist(server, SERVER_SCHEMA), path / "server.parquet")


def _info(n_queries: int, span_us: int) -> RunInfo:
    n = n_queries * len(DELIVERIES)
    return RunInfo(
        format=RUN_FORMAT,
        created_utc="2026-01-01T00:00:00Z",
        command=["s2l", "replay", "synthetic"],
        options={"temperature": 0, "slo": "ttft_s<500ms,tpot_s<50ms"},
        seed=1,
        trace=TraceRef(name="synthetic", path="synthetic", sha256="0" * 64),
        target=Target(url="http://127.0.0.1:1", adapter="openai"),
        host={},
        packages={},
        schedule={"process": "constant", "rate_qps": RATE_QPS},
        warmup={},
        passes=[
            PassWindow(delivery=name, start_us=at * span_us, end_us=(at + 1) * span_us)
            for at, name in enumerate(DELIVERIES)
        ],
        validity=Validity(verdict="valid"),
        counts=Counts(planned=n, sent=n, succeeded=n, unsent=0),
    )


if __name__ == "__main__":
    main()
