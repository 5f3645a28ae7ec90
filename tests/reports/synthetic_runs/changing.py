"""A run whose context is replaced while it is sent."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from synthetic_runs.request_rows import QUESTIONS, request, request_table
from synthetic_runs.run_folder import run_info, write_run

from s2l.replayer.run import CHUNK_SCHEMA, Validity

GAP_US = 12_000_000


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
