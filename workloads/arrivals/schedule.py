"""The starts of a replay: an arrival process, ended by a count, by a duration, or by itself."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from s2l.workloads.arrival_process import arrival_process
from s2l.workloads.arrivals.base import NEVER_US, ArrivalProcess, OffsetsUs

MOST_STARTS: Final = 20_000_000
"""A schedule beyond it is refused: it would fill the memory before anything is sent."""

_FIRST_COUNT: Final = 1000


def schedule_us(
    arrivals: str,
    *,
    rate_qps: float | None,
    seed: int,
    recorded_us: Sequence[int],
    n: int | None = None,
    duration_s: float | None = None,
    burstiness: float = 1.0,
) -> OffsetsUs:
    """Start offsets in µs, from 0, in order: at most ``n``, and all before ``duration_s``.

    Without either, a ramp or steps last as long as they state, and others have as many starts as
    ``recorded_us`` has offsets: the whole trace once. With recorded arrivals the k-th start is of
    the query whose recorded offset is the k-th; after the last one the first comes again.

    Raises:
        ValueError: the arguments have no answer.
        ImportFailed, DiskError: a file of delays that cannot be read.
    """
    process = arrival_process(arrivals, burstiness)
    asked = _Asked(process, rate_qps, seed, recorded_us)
    if n is None and duration_s is None:
        duration_s = process.ends_after_s
    if duration_s is not None:
        return asked.until(duration_s, n)
    return _all_come(asked.first(len(recorded_us) if n is None else n))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A process with all that it is asked but the count."""

    process: ArrivalProcess
    rate_qps: float | None
    seed: int
    recorded_us: Sequence[int]

    def first(self, n: int) -> OffsetsUs:
        """The first ``n`` offsets."""
        if n > MOST_STARTS:
            raise _too_many()
        return self._offsets(n)

    def until(self, duration_s: float, n: int | None) -> OffsetsUs:
        """The offsets before then, and no more than ``n``."""
        if not (math.isfinite(duration_s) and duration_s > 0):
            raise ValueError(f"duration_s is {duration_s}; it must be above 0")
        end_us = duration_s * 1e6
        found = self._beyond(end_us) if n is None else self.first(n)
        return found[found < end_us]

    def _beyond(self, end_us: float) -> OffsetsUs:
        """So many offsets that the last is not before the end."""
        # Never fewer than are followed: a rate stretches the whole of them.
        count = max(_FIRST_COUNT, self.process.followed(self.recorded_us))
        while (found := self._offsets(count))[-1] < end_us:
            if count > MOST_STARTS:
                raise _too_many()
            count = min(2 * count, MOST_STARTS + 1)
        return found

    def _offsets(self, n: int) -> OffsetsUs:
        return self.process(n, self.rate_qps, self.seed, self.recorded_us)


def _too_many() -> ValueError:
    return ValueError(f"more than {MOST_STARTS:,} starts; give a lower rate or a shorter duration")


def _all_come(offsets: OffsetsUs) -> OffsetsUs:
    if offsets.size and offsets[-1] == NEVER_US:
        come = int(np.searchsorted(offsets, NEVER_US))
        raise ValueError(f"{offsets.size} starts asked for, but the rate falls to 0 after {come}")
    return offsets
