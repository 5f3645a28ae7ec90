"""What an arrival process is, and whole microseconds."""

import math
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

OffsetsUs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NEVER_US: Final = 2**62
"""The offset of a start that does not come: a ramp had fallen to a rate of 0 before."""

_LONGEST_US: Final = 2.0**53
"""Up to here, some 285 years, every whole microsecond is a double."""


class ArrivalProcess(Protocol):
    """Start offsets of ``n`` queries in µs: the first is 0, none is before the one before it.

    ``rate_qps`` is the mean rate; None where the process has times of its own and keeps them.
    ``recorded_us`` are the trace's own offsets; only a process that follows them reads them.
    The first offsets of a longer schedule are those of a shorter one, but for recorded times that
    are stretched to a rate. Raises ValueError for arguments that have no answer.
    """

    def __call__(
        self, n: int, rate_qps: float | None, seed: int, recorded_us: Sequence[int]
    ) -> OffsetsUs: ...

    @property
    def ends_after_s(self) -> float | None:
        """How long it goes on by itself; None where only a count or a duration ends it."""

    def followed(self, recorded_us: Sequence[int]) -> int:
        """How many recorded offsets it follows before they begin again; 0 where it follows none."""


def whole_us(times_us: npt.NDArray[np.floating]) -> OffsetsUs:
    """Times rounded to microseconds. Raises ValueError where a schedule lasts for centuries."""
    if times_us.size and not float(times_us.max()) < _LONGEST_US:
        raise ValueError("the schedule would last for centuries; give a higher rate")
    rounded: OffsetsUs = np.rint(times_us).astype(np.int64)
    return rounded


def checked_rate(n: int, rate_qps: float | None) -> float:
    """The rate. Raises ValueError for one, or a count, that cannot be."""
    check_count(n)
    if rate_qps is None:
        raise ValueError("these arrivals need a rate")
    if not (math.isfinite(rate_qps) and rate_qps > 0):
        raise ValueError(f"rate_qps is {rate_qps}; it must be above 0")
    return rate_qps


def check_count(n: int) -> None:
    """Raises ValueError for a negative count."""
    if n < 0:
        raise ValueError(f"n is {n}; it must be 0 or more")
