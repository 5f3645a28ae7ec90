"""One pass over the columns of a run's requests that are too large to be held."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.replayer.run import REQUEST_SCHEMA, Run
from s2l.reports.answers import REFUSAL, References, text_scores
from s2l.reports.columns import column_batches
from s2l.reports.metrics import Booleans, Floats, itl_s
from s2l.reports.quality import SCORERS

_COLUMNS: Final = (
    *("query_id", "delivery", "error_type", "error", "output_text"),
    *("token_us", "token_n", "attempt_errors"),
)


@dataclass(frozen=True, slots=True)
class TokenEvents:
    """Content events of one delivery: gaps inside requests (``itl_s``), how many events, and the
    tokens in them as the events say."""

    gaps_s: Floats
    events: int
    tokens: int

    @property
    def tokens_per_event(self) -> float | None:
        """Mean; None without events."""
        return self.tokens / self.events if self.events else None


NO_EVENTS: Final = TokenEvents(np.empty(0), 0, 0)


@dataclass(frozen=True, slots=True)
class RequestScan:
    """What the pass found.

    ``texts`` are the answers of all requests, and ``scores`` what each is worth by scorer, NaN
    where it failed or has no reference. ``examples`` has a message for each ``error_type``;
    ``retried`` counts attempts that failed and were repeated, by their error.
    """

    texts: pa.ChunkedArray
    scores: Mapping[str, Floats]
    events: Mapping[str, TokenEvents]
    examples: Mapping[str, str]
    retried: Mapping[str, int]


def scan_requests(run: Run, counted: Booleans, queries: pa.Table) -> RequestScan:
    """Go through the requests.

    Args:
        run: whose requests.
        counted: for each request, whether its token events count.
        queries: with the columns of ``QUERY_SCHEMA``.
    """
    scan = _Scan(counted, queries)
    for batch in column_batches(run.path / "requests.parquet", REQUEST_SCHEMA, _COLUMNS):
        scan.take(batch)
    return scan.found()


class _Scan:
    """Gathers batch by batch."""

    def __init__(self, counted: Booleans, queries: pa.Table) -> None:
        self._counted = counted
        self._query_ids = queries["query_id"].combine_chunks()
        self._answers = queries["answers"]
        self._n = 0
        self._texts: list[pa.ChunkedArray] = []
        self._scores: dict[str, list[Floats]] = {name: [] for name in (*SCORERS, REFUSAL)}
        self._gaps: dict[str, list[Floats]] = {}
        self._events: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._examples: dict[str, str] = {}
        self._retried: Counter[str] = Counter()

    def take(self, batch: pa.Table) -> None:
        """Add one batch."""
        fine = pc.is_null(batch["error_type"])
        counted = self._counted[self._n : self._n + batch.num_rows]
        self._n += batch.num_rows
        self._take_events(batch.filter(pc.and_(fine, pa.array(counted))))
        self._take_texts(batch, np.asarray(fine.to_numpy(), dtype=np.bool_))
        self._take_errors(batch.filter(pc.invert(fine)))
        self._retried.update(pc.list_flatten(batch["attempt_errors"]).drop_null().to_pylist())

    def found(self) -> RequestScan:
        """All of it."""
        texts = [chunk for part in self._texts for chunk in part.chunks]
        return RequestScan(
            texts=pa.chunked_array(texts, pa.string()),
            scores={n: np.concatenate([*v, np.empty(0)]) for n, v in self._scores.items()},
            events=dict(self._delivered()),
            examples=self._examples,
            retried=dict(self._retried.most_common()),
        )

    def _delivered(self) -> Iterator[tuple[str, TokenEvents]]:
        for name, gaps in self._gaps.items():
            # The parts are let go as they are joined: there may be tens of millions of gaps.
            joined = np.concatenate(gaps)
            gaps.clear()
            yield name, TokenEvents(joined, self._events[name], self._tokens[name])

    def _take_events(self, batch: pa.Table) -> None:
        for name in batch["delivery"].unique().to_pylist():
            mine = batch.filter(pc.equal(batch["delivery"], name))
            tokens = pc.list_flatten(mine["token_n"])
            self._gaps.setdefault(name, []).append(itl_s(mine))
            self._events[name] += len(tokens)
            self._tokens[name] += pc.sum(tokens).as_py() or 0

    def _take_texts(self, batch: pa.Table, fine: Booleans) -> None:
        self._texts.append(batch["output_text"])
        for name, values in text_scores(batch, self._references(batch)).items():
            values[~fine] = np.nan
            self._scores[name].append(values)

    def _references(self, batch: pa.Table) -> References:
        ids = pc.unique(batch["query_id"])
        places = pc.index_in(ids, value_set=self._query_ids)
        known = self._answers.take(places).to_pylist()
        return {i: answers or () for i, answers in zip(ids.to_pylist(), known, strict=True)}

    def _take_errors(self, failed: pa.Table) -> None:
        for name in failed["error_type"].unique().to_pylist():
            if self._examples.get(name):
                continue
            messages = failed.filter(pc.equal(failed["error_type"], name))["error"].drop_null()
            self._examples[name] = messages[0].as_py() if len(messages) else ""
