"""The life of one query in detail: what happened when, in both deliveries."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports.metrics import US_PER_S, succeeded, ttft_s
from s2l.reports.pairs import Pairs


@dataclass(frozen=True, slots=True)
class SentChunk:
    """One context chunk, in seconds since its query's intended start; None: never happened."""

    sent_s: float | None
    prefilled_s: float | None


@dataclass(frozen=True, slots=True)
class Life:
    """One request, in seconds since its query's intended start."""

    delivery: str
    query_id: str
    arrivals_s: tuple[float, ...]
    chunks: tuple[SentChunk, ...]
    due_s: float
    first_token_s: float | None
    last_token_s: float | None
    ttft_s: float | None

    @classmethod
    def of(cls, request: dict[str, Any], chunks: pa.Table) -> "Life":
        """Read one row of the requests and, out of all chunks, those that belong to it."""
        start = request["start_intended_us"]

        def since_start(time_us: int | None) -> float | None:
            return None if time_us is None else (time_us - start) / US_PER_S

        mine = chunks.filter(pc.equal(chunks["request_id"], request["request_id"]))
        rows = mine.sort_by("seq").to_pylist()
        due, first = request["context_intended_us"], request["first_token_us"]
        return cls(
            delivery=request["delivery"],
            query_id=request["query_id"],
            arrivals_s=tuple((row["arrival_intended_us"] - start) / US_PER_S for row in rows),
            chunks=tuple(
                SentChunk(since_start(row["sent_us"]), since_start(row["prefilled_us"]))
                for row in rows
            ),
            due_s=(due - start) / US_PER_S,
            first_token_s=since_start(first),
            last_token_s=since_start(request["last_token_us"]),
            ttft_s=None if first is None else (first - due) / US_PER_S,
        )


def typical(requests: pa.Table, chunks: pa.Table) -> tuple[Life, ...]:
    """The pair whose gain is nearest the median one, stream first.

    Without pairs: the success nearest the median TTFT; nothing where none succeeded.
    """
    pairs = Pairs.of(requests)
    gains = pairs.gains()
    if not np.isnan(gains).all():
        row = int(np.nanargmin(np.abs(gains - np.nanmedian(gains))))
        sides = (pairs.stream, pairs.wait)
        return tuple(Life.of(side.slice(row, 1).to_pylist()[0], chunks) for side in sides)
    done = succeeded(requests)
    waits = ttft_s(done)
    if np.isnan(waits).all():
        return ()
    row = int(np.nanargmin(np.abs(waits - np.nanmedian(waits))))
    return (Life.of(done.slice(row, 1).to_pylist()[0], chunks),)
