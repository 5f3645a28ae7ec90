"""The published shape of Stream2LLM's approximate nearest neighbour search workload."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from s2l.workloads.arrival import ArrivalKind
from s2l.workloads.synth.draws import (
    Counts,
    Curve,
    Ints,
    Source,
    blocks,
    correlated,
    shares,
)
from s2l.workloads.synth.profile import BLOCK_QUERIES
from s2l.workloads.synth.shape import ArrivalShape, QueryShape
from s2l.workloads.synth.stream2llm import QUESTION_TOKENS, gaps_us

# Published: median 36.7, mean 157, p95 699, p99 2,079 ms. The rest meets the mean.
GAP_S: Final = Curve(
    ((0.005, 0.001), (0.5, 0.0367), (0.75, 0.125), (0.95, 0.699), (0.99, 2.079), (0.99995, 8.0))
)
# Published: mean 13,006, p50 10,126, p95 30,618: the final context.
TOKENS: Final = Curve(
    ((0.002, 1_500), (0.5, 10_126), (0.75, 18_000), (0.95, 30_618), (0.9995, 67_000))
)
# Published: median 3.46, mean 3.63, p95 5.38 s: the search goes on after its last change.
DURATION_S: Final = Curve(((0.002, 1.85), (0.5, 3.46), (0.95, 5.38), (0.9998, 8.0)))
# Published: 1 to 26 updates, mean 4.42.
UPDATES: Final = Counts(1, tuple(0.7765**k for k in range(26)))

# What is not published: the pool's size, how many of it one update changes, the correlations.
POOL: Final = 10
CHANGED: Final = Counts(1, (0.45, 0.25, 0.15, 0.1, 0.05))
_GAP_BY_UPDATES: Final = -0.2
_TOKENS_BY_UPDATES: Final = 0.1
_SPREAD: Final = 0.6
_FIRST_US: Final = 1_000


class AnnsProfile:
    """Pools of neighbours that replace one another while the search goes on."""

    name = "stream2llm-anns"

    def shapes(self, n: int, seed: int) -> Iterator[QueryShape]:
        """The shapes of n queries."""
        for number, size in blocks(n, BLOCK_QUERIES):
            yield from _block(size, Source(2, seed, number))


def _block(n: int, source: Source) -> Iterator[QueryShape]:
    by_updates = source.normals(n)
    updates = UPDATES.quantiles(source.strata(by_updates))
    by_tokens = correlated(source.normals(n), by_updates, _TOKENS_BY_UPDATES)
    tokens = np.rint(TOKENS.quantiles(source.strata(by_tokens))).astype(np.int64)
    pace = correlated(source.normals(n), by_updates, _GAP_BY_UPDATES)
    gaps = gaps_us(GAP_S, updates - 1, pace, source)
    edges = np.concatenate([[0], np.cumsum(updates - 1)])
    sums = np.concatenate([[0], np.cumsum(gaps)])
    drawn_us = np.rint(1e6 * DURATION_S.quantiles(source.strata(source.normals(n))))
    ends_us = _ends_us(sums[edges[1:]] - sums[edges[:-1]], drawn_us.astype(np.int64), source)
    question = np.rint(QUESTION_TOKENS.quantiles(source.uniforms(n)))
    for i in range(n):
        times_us = _FIRST_US + np.cumsum([0, *gaps[edges[i] : edges[i + 1]]])
        pools, count = _pools(len(times_us), source)
        arrivals = _arrivals(times_us.tolist(), pools)
        lengths = _lengths(pools[-1], count, int(tokens[i]), source)
        yield QueryShape(arrivals, int(ends_us[i]), lengths, int(question[i]))


def _ends_us(busy_us: Ints, drawn_us: Ints, source: Source) -> Ints:
    """Which query gets which of the drawn durations: by chance among those that it fits in.

    The longest goes first, so that the distribution is met exactly; one that fits in none ends
    with its last change.
    """
    order = np.argsort(-busy_us, kind="stable")
    free = sorted(drawn_us.tolist())
    chance = source.uniforms(len(order))
    ends_us = np.empty_like(busy_us)
    for place, i in enumerate(order):
        least = int(busy_us[i]) + _FIRST_US
        first = int(np.searchsorted(free, least))
        if first == len(free):
            free.pop()
            ends_us[i] = least
        else:
            ends_us[i] = free.pop(first + int(chance[place] * (len(free) - first)))
    return ends_us


def _pools(updates: int, source: Source) -> tuple[list[tuple[int, ...]], int]:
    """The pool after each update, from the last one backwards, and how many documents there were.

    What an update brought was not there before: in its place was one that was further away.
    """
    pool = list(range(POOL))
    pools = [tuple(pool)]
    count = POOL
    for changed in CHANGED.quantiles(source.uniforms(updates - 1)).tolist():
        out = np.argsort(source.uniforms(POOL), kind="stable")[:changed]
        for place in sorted(out.tolist(), reverse=True):
            pool.pop(place)
        pool += range(count, count + changed)
        count += changed
        pools.insert(0, tuple(pool))
    return pools, count


def _lengths(final: tuple[int, ...], count: int, tokens: int, source: Source) -> tuple[int, ...]:
    """Lengths of all documents, so that those of the final pool have ``tokens`` together."""
    weights = np.exp(_SPREAD * source.normals(count))
    kept = shares(weights[: len(final)], tokens)
    mean = tokens / weights[: len(final)].sum()
    others = np.maximum(1, np.rint(weights[len(final) :] * mean)).astype(np.int64)
    return kept + tuple(others.tolist())


def _arrivals(times_us: list[int], pools: list[tuple[int, ...]]) -> tuple[ArrivalShape, ...]:
    return tuple(
        ArrivalShape(ArrivalKind.REPLACE, at_us, at_us, pool)
        for at_us, pool in zip(times_us, pools, strict=True)
    )
