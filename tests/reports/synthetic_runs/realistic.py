"""A run like one a replay leaves: seeded, with both deliveries and a failure."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from synthetic_runs.request_rows import QUESTIONS, failed, request, request_table
from synthetic_runs.run_folder import write_run

from s2l.replayer.run import CHUNK_SCHEMA

N_CHUNKS = 7
GAP_US = 12_000_000


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
