"""When a search's updates are said to come: as they did, or later as on a slower service."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np

from s2l.collectors.ann.errors import AnnError
from s2l.collectors.ann.progressive_search import Search, Update
from s2l.workloads.synth.anns_profile import DURATION_S, GAP_S
from s2l.workloads.synth.draws import Curve, Source

_STREAM: Final = 4
"""Of random numbers; the profiles of synthetic traces have others."""

_MOST: Final = 1_000_000
"""Times that a search is slowed: one of a millisecond then takes a quarter of an hour."""


class LatencyModel(Protocol):
    """Gives a search other times. Never earlier ones: they are waited for."""

    def timed(self, number: int, search: Search) -> Search:
        """The search of the ``number``-th question with its times."""

    def options(self) -> dict[str, Any]:
        """What the manifest says of it."""


class AsMeasured:
    """Leaves the times as they were."""

    def timed(self, number: int, search: Search) -> Search:
        """The same search."""
        return search

    def options(self) -> dict[str, Any]:
        """Nothing was done."""
        return {"latency": "measured"}


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Multiplies all times since the search began; waiting for a thread is not multiplied."""

    factor: float

    def __post_init__(self) -> None:
        if not 1 <= self.factor <= _MOST:
            raise AnnError(f"time scale {self.factor:g}: give 1 or more, and at most {_MOST:,}")

    def timed(self, number: int, search: Search) -> Search:
        """The search, slower."""

        def scaled(time_us: int) -> int:
            return search.start_us + round(self.factor * (time_us - search.start_us))

        updates = tuple(
            replace(u, start_us=scaled(u.start_us), at_us=scaled(u.at_us)) for u in search.updates
        )
        return replace(search, updates=updates, end_us=scaled(search.end_us))

    def options(self) -> dict[str, Any]:
        """The factor."""
        return {"latency": "stretched", "time_scale": self.factor}


class PublishedGaps:
    """Gaps between updates and durations as published for Stream2LLM's vector searches.

    The changes and their number stay those of the real search, the first at its real time. Of all
    gaps and of all durations, one is drawn out of each n-th of its distribution, so that few
    questions have it too. A search whose gaps together are longer than its duration ends with its
    last update.

    ``updates`` says how many each search is known to have. Where one has more (a reranker adds
    one), the further gaps are drawn independently.
    """

    def __init__(self, updates: Sequence[int], seed: int) -> None:
        self._seed = seed
        gaps = [max(0, n - 1) for n in updates]
        gaps_us = _stratified_us(GAP_S, sum(gaps), Source(_STREAM, seed, 0))
        edges = np.cumsum([0, *gaps]).tolist()
        self._gaps_us = [gaps_us[a:b] for a, b in pairwise(edges)]
        self._durations_us = _stratified_us(DURATION_S, len(gaps), Source(_STREAM, seed, 1))

    def timed(self, number: int, search: Search) -> Search:
        """The search with drawn times; a real gap is kept where it is longer than the drawn."""
        updates: list[Update] = []
        for update, gap_us in zip(search.updates, self._gaps(number, search), strict=True):
            at_us = updates[-1].at_us + gap_us if updates else update.at_us
            start_us = updates[-1].at_us if updates else update.start_us
            updates.append(replace(update, start_us=start_us, at_us=at_us))
        last_us = updates[-1].at_us if updates else search.start_us
        duration_us = self._durations_us[number]
        end_us = max(search.end_us, last_us, search.start_us + duration_us)
        return replace(search, updates=tuple(updates), end_us=end_us)

    def _gaps(self, number: int, search: Search) -> list[int]:
        """The time before each update since the one before; nothing before the first."""
        real_us = [b.at_us - a.at_us for a, b in pairwise(search.updates)]
        drawn_us = self._gaps_us[number]
        further = Source(_STREAM, self._seed, 2, number)
        drawn_us = drawn_us + _stratified_us(GAP_S, max(0, len(real_us) - len(drawn_us)), further)
        return [0, *map(max, real_us, drawn_us)] if search.updates else []

    def options(self) -> dict[str, Any]:
        """The name of the published workload."""
        return {"latency": "stretched", "gaps": STREAM2LLM_ANNS}


def _stratified_us(curve: Curve, n: int, source: Source) -> list[int]:
    """n values of a distribution in seconds, one out of each n-th of it, in random order."""
    seconds = curve.quantiles(source.strata(source.uniforms(n)))
    return [int(value) for value in np.rint(1e6 * seconds).tolist()]


STREAM2LLM_ANNS: Final = "stream2llm-anns"
GAPS: Final = {STREAM2LLM_ANNS: PublishedGaps}
"""Published gaps, by name."""
