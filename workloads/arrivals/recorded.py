"""Starts that were recorded: by the trace itself, or in a file of delays."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from s2l.workloads.arrivals.base import OffsetsUs, check_count, checked_rate, whole_us


@dataclass(frozen=True, slots=True)
class Recorded:
    """The first ``n`` recorded offsets, sorted and counted from the first of them.

    A rate stretches them so that it is their mean rate, which of n starts is
    (n - 1) / (last - first). Where more are asked for than there are, they begin again one mean
    gap after the last. ``offsets_us`` are followed in the place of the trace's own.
    """

    offsets_us: tuple[int, ...] | None = None
    ends_after_s: None = None

    def followed(self, recorded_us: Sequence[int]) -> int:
        """All of its own, where it has some, or of the trace's."""
        return len(self._followed(recorded_us))

    def __call__(
        self, n: int, rate_qps: float | None, seed: int, recorded_us: Sequence[int]
    ) -> OffsetsUs:
        """See ``ArrivalProcess``."""
        check_count(n)
        if rate_qps is not None:
            checked_rate(n, rate_qps)
        chosen = self._followed(recorded_us)[:n]
        if n > 0 and not len(chosen):
            raise ValueError("no offsets are recorded; use poisson or constant")
        offsets = np.sort(np.asarray(chosen, dtype=np.int64))
        offsets = _stretched(offsets - offsets[:1].sum(), rate_qps)
        return _repeated(offsets, n, rate_qps)

    def _followed(self, recorded_us: Sequence[int]) -> Sequence[int]:
        return recorded_us if self.offsets_us is None else self.offsets_us


def _stretched(offsets: OffsetsUs, rate_qps: float | None) -> OffsetsUs:
    if rate_qps is None or offsets.size < 2:
        return offsets
    if offsets[-1] == 0:
        raise ValueError("all queries were recorded at the same moment; use poisson or constant")
    stretch = ((offsets.size - 1) * 1e6 / rate_qps) / float(offsets[-1])
    return whole_us(offsets * stretch)


def _repeated(offsets: OffsetsUs, n: int, rate_qps: float | None) -> OffsetsUs:
    """The offsets again and again, up to ``n`` of them."""
    size = offsets.size
    if n <= size:
        return offsets
    if size == 1 and rate_qps is None:
        raise ValueError("one offset is recorded, and a single one has no rate to go on at")
    gap_us = 1e6 / rate_qps if rate_qps is not None else float(offsets[-1]) / (size - 1)
    if gap_us == 0:
        raise ValueError("all queries were recorded at the same moment; use poisson or constant")
    period_us = int(offsets[-1]) + max(1, round(gap_us))
    number = np.arange(n)
    found: OffsetsUs = offsets[number % size] + (number // size) * period_us
    return found
