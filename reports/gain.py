"""The streaming gain: how much sooner the first token comes when context is streamed."""

from dataclasses import dataclass

import numpy as np

from s2l.reports.bootstrap import Interval, median_interval, paired_ratio_interval
from s2l.reports.metrics import Codes, Floats, codes, ratio, ttft_s
from s2l.reports.pairs import Pairs
from s2l.reports.percentiles import LEVELS, Distribution


@dataclass(frozen=True, slots=True)
class SidedGain:
    """One percentile of ``ttft_s`` in each delivery, over the pairs, and wait / stream with the
    95 % interval of a bootstrap of the pairs."""

    percentile: str
    wait_s: float | None
    stream_s: float | None
    ratio: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class StreamingGain:
    """``ttft_s`` wait / stream over the queries that succeeded in both deliveries.

    ``pairs`` is how many gains there are, of ``queries`` queries; ``unpaired`` is how many pairs
    were left out. ``median`` is None with fewer than two pairs, ``interval`` with fewer than six
    queries. ``single`` is the gain of a lone pair.
    """

    pairs: int
    queries: int
    unpaired: int
    median: float | None
    interval: Interval | None
    single: float | None
    sides: tuple[SidedGain, ...]

    @classmethod
    def of(cls, pairs: Pairs, seed: int) -> "StreamingGain":
        """Derive it from the pairs; ``seed`` is the bootstrap's."""
        gains = pairs.gains()
        known = ~np.isnan(gains)
        found = gains[known]
        wait, stream = ttft_s(pairs.wait)[known], ttft_s(pairs.stream)[known]
        asked = codes(pairs.wait, "query_id")[known]
        return cls(
            pairs=int(found.size),
            queries=int(np.unique(asked).size),
            unpaired=pairs.unpaired + int((~known).sum()),
            median=Distribution.of(found).p50,
            interval=median_interval(found, seed, codes=asked),
            single=float(found[0]) if found.size == 1 else None,
            sides=_sides(wait, stream, asked, seed),
        )


def _sides(wait: Floats, stream: Floats, asked: Codes, seed: int) -> tuple[SidedGain, ...]:
    """Each percentile that the pairs carry, of both sides."""
    of_wait, of_stream = Distribution.of(wait), Distribution.of(stream)
    sides = []
    for name, level in LEVELS.items():
        wait_s, stream_s = of_wait.level(name), of_stream.level(name)
        found = ratio(wait_s, stream_s)
        interval = None
        if found is not None:
            interval = paired_ratio_interval(wait, stream, level, seed, codes=asked)
        sides.append(SidedGain(name, wait_s, stream_s, found, interval))
    return tuple(sides)
