"""The streaming gain: how much sooner the first token comes when context is streamed."""

from dataclasses import dataclass

import numpy as np

from s2l.reports.bootstrap import Interval, median_interval
from s2l.reports.metrics import ratio, ttft_s
from s2l.reports.pairs import Pairs
from s2l.reports.percentiles import LEVELS, Distribution


@dataclass(frozen=True, slots=True)
class SidedGain:
    """One percentile of ``ttft_s`` in each delivery, over the pairs, and wait / stream."""

    percentile: str
    wait_s: float | None
    stream_s: float | None
    ratio: float | None


@dataclass(frozen=True, slots=True)
class StreamingGain:
    """``ttft_s`` wait / stream over the queries that succeeded in both deliveries.

    ``pairs`` is how many gains there are, ``unpaired`` how many queries were left out. ``median``
    is None with fewer than two pairs, ``interval`` with fewer than six. ``single`` is the gain of
    a lone pair.
    """

    pairs: int
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
        wait = Distribution.of(ttft_s(pairs.wait)[known])
        stream = Distribution.of(ttft_s(pairs.stream)[known])
        return cls(
            pairs=int(found.size),
            unpaired=pairs.unpaired + int((~known).sum()),
            median=Distribution.of(found).p50,
            interval=median_interval(found, seed),
            single=float(found[0]) if found.size == 1 else None,
            sides=tuple(_sided(name, wait, stream) for name in LEVELS),
        )


def _sided(name: str, wait: Distribution, stream: Distribution) -> SidedGain:
    wait_s, stream_s = wait.level(name), stream.level(name)
    return SidedGain(name, wait_s, stream_s, ratio(wait_s, stream_s))
