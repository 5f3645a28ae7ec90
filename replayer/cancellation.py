"""Clients that give up: a share of the requests, at moments drawn by seed."""

from typing import Final

import numpy as np
import numpy.typing as npt

_STREAM: Final = 0x51C0
"""Keeps these draws apart from those of the schedule, which have the same seed."""
AFTER_DUE_US: Final = 1_000_000


def cancel_moments_us(
    n: int, fraction: float, seed: int, dues_us: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64] | None:
    """For each request, when its client gives up (µs since its start), negative where it does not.

    A request of the share gives up at a moment that is equally likely anywhere from its start to a
    second after its context is due (``dues_us``, since its start). None where nobody gives up.
    """
    if fraction <= 0:
        return None
    draws = np.random.Generator(np.random.PCG64([seed, _STREAM])).random((n, 2))
    moments = np.rint(draws[:, 1] * (dues_us + AFTER_DUE_US)).astype(np.int64)
    return np.where(draws[:, 0] < fraction, moments, np.int64(-1))
