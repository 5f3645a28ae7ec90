"""A run with all that a run can have."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from synthetic_runs.request_rows import QUESTIONS, failed, request, request_table
from synthetic_runs.run_folder import run_info, write_run
from synthetic_runs.samples import client_samples, server_samples

from s2l.replayer.run import CHUNK_SCHEMA, PassWindow

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
