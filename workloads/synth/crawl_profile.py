"""The published shape of Stream2LLM's crawl workload."""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from s2l.workloads.arrival import ArrivalKind
from s2l.workloads.synth.draws import (
    Counts,
    Curve,
    Source,
    blocks,
    correlated,
    shares,
)
from s2l.workloads.synth.profile import BLOCK_QUERIES
from s2l.workloads.synth.shape import ArrivalShape, QueryShape
from s2l.workloads.synth.stream2llm import QUESTION_TOKENS, gaps_us

# Published: median 0.701, mean 1.053, p95 3.08, p99 5.29, max 34.9 s. The rest meets the mean.
GAP_S: Final = Curve(
    ((0.005, 0.05), (0.5, 0.701), (0.75, 1.355), (0.95, 3.08), (0.99, 5.29), (0.99997, 34.9))
)
# Published: p50 5,749, p75 11,167, p95 28,372, mean 8,889.
TOKENS: Final = Curve(
    ((0.002, 150), (0.25, 2_600), (0.5, 5_749), (0.75, 11_167), (0.95, 28_372), (0.9995, 110_000))
)
# Published: 1 to 17 rows with the search, mean 7.86.
ROWS: Final = Counts(1, tuple(math.exp(-(((k - 7.84) / 2.7) ** 2) / 2) for k in range(1, 18)))
# The search's own time is not published; what the durations (mean 9.87, median 9.29, p95 16.7 s)
# leave for it beside the gaps is.
SEARCH_S: Final = Curve(((0.002, 0.8), (0.5, 2.6), (0.95, 4.0), (0.9995, 7.0)))

# Correlations are not published: those of the latent normal values are chosen so that what is
# published of the durations comes out, and so that more pages mean more tokens.
_TOKENS_BY_ROWS: Final = 0.6
_PACE_BY_ROWS: Final = -0.65
_PAGE_SPREAD: Final = 0.9


class CrawlProfile:
    """A search, then pages one after another; rows, gaps and tokens drawn jointly."""

    name = "stream2llm-crawl"

    def shapes(self, n: int, seed: int) -> Iterator[QueryShape]:
        """The shapes of n queries."""
        for number, size in blocks(n, BLOCK_QUERIES):
            yield from _block(size, Source(1, seed, number))


def _block(n: int, source: Source) -> Iterator[QueryShape]:
    by_rows = source.normals(n)
    rows = ROWS.quantiles(source.strata(by_rows))
    by_tokens = correlated(source.normals(n), by_rows, _TOKENS_BY_ROWS)
    tokens = np.rint(TOKENS.quantiles(source.strata(by_tokens))).astype(np.int64)
    search_us = np.rint(1e6 * SEARCH_S.quantiles(source.strata(source.normals(n))))
    question = np.rint(QUESTION_TOKENS.quantiles(source.uniforms(n)))
    pace = correlated(source.normals(n), by_rows, _PACE_BY_ROWS)
    gaps = gaps_us(GAP_S, rows - 1, pace, source)
    at = 0
    for i in range(n):
        pages = int(rows[i]) - 1
        weights = np.exp(_PAGE_SPREAD * source.normals(pages))
        arrivals = _arrivals(int(search_us[i]), gaps[at : at + pages].tolist())
        lengths = shares(weights, int(tokens[i])) if pages else ()
        yield QueryShape(arrivals, arrivals[-1].arrival_us, lengths, int(question[i]))
        at += pages


def _arrivals(search_us: int, gaps_us: list[int]) -> tuple[ArrivalShape, ...]:
    """The search, then page k after the k-th gap; all fetches began when the search ended."""
    found = [ArrivalShape(ArrivalKind.SEARCH, 0, search_us)]
    at_us = search_us
    for page, gap_us in enumerate(gaps_us):
        at_us += gap_us
        found.append(ArrivalShape(ArrivalKind.APPEND, search_us, at_us, (page,)))
    return tuple(found)
