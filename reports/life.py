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
    """One context chunk, in seconds since its query's intended start; None: never happened.

    Documents are None where the run does not name them, tokens where they are not known.
    """

    arrival_s: float
    sent_s: float | None
    prefilled_s: float | None
    replaces: bool
    doc_ids: tuple[str, ...] | None
    context_tokens: int | None
    kept_tokens: int | None


@dataclass(frozen=True, slots=True)
class Life:
    """One request, in seconds since its query's intended start."""

    delivery: str
    query_id: str
    chunks: tuple[SentChunk, ...]
    due_s: float
    first_token_s: float | None
    last_token_s: float | None
    ttft_s: float | None

    @classmethod
    def of(cls, request: dict[str, Any], chunks: pa.Table) -> "Life":
        """Read one row of the requests and, out of all chunks, those that belong to it."""
        start = request["start_intended_us"]

        mine = chunks.filter(pc.equal(chunks["request_id"], request["request_id"]))
        rows = mine.sort_by("seq").to_pylist()
        due, first = request["context_intended_us"], request["first_token_us"]
        return cls(
            delivery=request["delivery"],
            query_id=request["query_id"],
            chunks=tuple(_chunk(row, start) for row in rows),
            due_s=(due - start) / US_PER_S,
            first_token_s=_seconds_since(start, first),
            last_token_s=_seconds_since(start, request["last_token_us"]),
            ttft_s=_seconds_since(due, first),
        )

    @property
    def arrivals_s(self) -> tuple[float, ...]:
        """When each chunk arrived."""
        return tuple(chunk.arrival_s for chunk in self.chunks)


def typical(requests: pa.Table, pairs: Pairs) -> list[dict[str, Any]]:
    """The rows of the pair whose gain is nearest the median one, stream first.

    Without pairs: the success nearest the median TTFT; nothing where none succeeded.
    """
    gains = pairs.gains()
    if not np.isnan(gains).all():
        row = int(np.nanargmin(np.abs(gains - np.nanmedian(gains))))
        return [side.slice(row, 1).to_pylist()[0] for side in (pairs.stream, pairs.wait)]
    done = succeeded(requests)
    waits = ttft_s(done)
    if np.isnan(waits).all():
        return []
    row = int(np.nanargmin(np.abs(waits - np.nanmedian(waits))))
    found: list[dict[str, Any]] = done.slice(row, 1).to_pylist()
    return found


def _chunk(row: dict[str, Any], start_us: int) -> SentChunk:
    doc_ids = row["doc_ids"]
    return SentChunk(
        arrival_s=(row["arrival_intended_us"] - start_us) / US_PER_S,
        sent_s=_seconds_since(start_us, row["sent_us"]),
        prefilled_s=_seconds_since(start_us, row["prefilled_us"]),
        replaces=row["kind"] == "replace",
        doc_ids=None if doc_ids is None else tuple(doc_ids),
        context_tokens=row["context_tokens"],
        kept_tokens=row["kept_tokens"],
    )


def _seconds_since(earlier_us: int, time_us: int | None) -> float | None:
    return None if time_us is None else (time_us - earlier_us) / US_PER_S
