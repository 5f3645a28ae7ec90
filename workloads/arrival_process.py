"""When each query of a replay starts: arrival processes, pure arithmetic on seeds and rates."""

import math
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

OffsetsUs = npt.NDArray[np.int64]


class ArrivalProcess(Protocol):
    """Start offsets of ``n`` queries in µs: the first is 0, none is before the one before it.

    ``rate_qps`` is the mean rate. ``recorded_us`` are the trace's own offsets; only a process
    that follows them reads them. Raises ValueError for arguments that have no answer.
    """

    def __call__(
        self, n: int, rate_qps: float, seed: int, recorded_us: Sequence[int]
    ) -> OffsetsUs: ...


def constant(n: int, rate_qps: float, seed: int, recorded_us: Sequence[int]) -> OffsetsUs:
    """One query every 1/rate seconds; each offset is rounded by itself, so that none drifts."""
    _check(n, rate_qps)
    return _whole(np.arange(n) * (1e6 / rate_qps))


def poisson(n: int, rate_qps: float, seed: int, recorded_us: Sequence[int]) -> OffsetsUs:
    """A Poisson process: gaps are exponential with mean 1/rate, by inversion of uniform doubles.

    Only ``random()`` is drawn from PCG64, whose stream NumPy keeps from version to version. Gaps
    are whole microseconds before they are summed, so that sums are exact everywhere.
    """
    _check(n, rate_qps)
    uniform = np.random.Generator(np.random.PCG64(seed)).random(max(0, n - 1))
    gaps_us = _whole(-np.log1p(-uniform) * (1e6 / rate_qps))
    return np.concatenate([np.zeros(min(n, 1), dtype=np.int64), np.cumsum(gaps_us)])


def recorded(n: int, rate_qps: float, seed: int, recorded_us: Sequence[int]) -> OffsetsUs:
    """The trace's first ``n`` offsets, sorted, stretched so that their mean rate is the rate.

    The mean rate of n starts is (n - 1) / (last - first).
    """
    _check(n, rate_qps)
    if n > len(recorded_us):
        raise ValueError(f"{n} queries asked for, {len(recorded_us)} offsets recorded")
    offsets = np.sort(np.asarray(recorded_us[:n], dtype=np.int64))
    if n < 2:
        return np.zeros(n, dtype=np.int64)
    offsets -= offsets[0]
    if offsets[-1] == 0:
        raise ValueError("all queries were recorded at the same moment; use poisson or constant")
    stretch = ((n - 1) * 1e6 / rate_qps) / float(offsets[-1])
    return _whole(offsets * stretch)


ARRIVAL_PROCESSES: Final[dict[str, ArrivalProcess]] = {
    "constant": constant,
    "poisson": poisson,
    "recorded": recorded,
}


def arrival_process(name: str) -> ArrivalProcess:
    """The process of this name. Raises ValueError that lists the choices."""
    if name not in ARRIVAL_PROCESSES:
        choices = ", ".join(ARRIVAL_PROCESSES)
        raise ValueError(f"arrival process {name!r} is not one of {choices}")
    return ARRIVAL_PROCESSES[name]


def _whole(times_us: npt.NDArray[np.floating]) -> OffsetsUs:
    rounded: OffsetsUs = np.rint(times_us).astype(np.int64)
    return rounded


def _check(n: int, rate_qps: float) -> None:
    if n < 0:
        raise ValueError(f"n is {n}; it must be 0 or more")
    if not (math.isfinite(rate_qps) and rate_qps > 0):
        raise ValueError(f"rate_qps is {rate_qps}; it must be above 0")
