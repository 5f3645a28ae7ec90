"""How evenly queries come."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_WINDOWS = 10
"""An index of dispersion needs at least so many windows."""


@dataclass(frozen=True, slots=True)
class Burstiness:
    """Of query starts; None where there are too few.

    ``gap_cv`` is the standard deviation of the gaps over their mean: 0 for a metronome, 1 for a
    Poisson process, more for bursts. ``burst_index`` is (cv - 1) / (cv + 1), from -1 to 1 (Goh
    and Barabasi, 2008). ``dispersion`` is the variance over the mean of the counts in windows of
    so many seconds: 1 for a Poisson process. ``peak_qps`` is the most in one second.
    """

    mean_qps: float | None
    gap_cv: float | None
    burst_index: float | None
    dispersion: dict[str, float | None]
    peak_qps: float | None


def burstiness(offsets_us: Sequence[int]) -> Burstiness:
    """The figures of these starts, in any order."""
    at_us = np.sort(np.asarray(offsets_us, dtype=np.int64))
    none = {"1s": None, "10s": None, "60s": None}
    if at_us.size < 3 or at_us[-1] == at_us[0]:
        return Burstiness(None, None, None, dict(none), None)
    gaps_us = np.diff(at_us)
    cv = float(gaps_us.std() / gaps_us.mean())
    return Burstiness(
        mean_qps=float((at_us.size - 1) / ((at_us[-1] - at_us[0]) / 1e6)),
        gap_cv=cv,
        burst_index=(cv - 1) / (cv + 1),
        dispersion={name: _dispersion(at_us, int(name[:-1])) for name in none},
        peak_qps=float(_counts(at_us, 1).max()),
    )


def _counts(at_us: Ints, window_s: int) -> Ints:
    """Starts in each window that has any; long silent traces would have too many windows."""
    _, counts = np.unique((at_us - at_us[0]) // (window_s * 1_000_000), return_counts=True)
    return counts


def _dispersion(at_us: Ints, window_s: int) -> float | None:
    windows = int((at_us[-1] - at_us[0]) // (window_s * 1_000_000))
    if windows < _WINDOWS:
        return None
    last_us = at_us[0] + windows * window_s * 1_000_000
    counts = _counts(at_us[at_us < last_us], window_s)
    mean = counts.sum() / windows
    square = float((counts.astype(np.float64) ** 2).sum()) / windows
    return float((square - mean * mean) / mean)
