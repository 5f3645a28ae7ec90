"""Fewer points for a chart or a table, without losing what stands out."""

import numpy as np
import numpy.typing as npt

EXTREMES = 20
"""This many values at each end always stay."""


def thinned(n: int, limit: int) -> npt.NDArray[np.intp]:
    """At most ``limit`` positions of n ordered values.

    Both ends stay whole; half of the rest is even in rank, half ever denser towards the upper
    end, where the rare slow ones are. ``limit`` is at least 4 times ``EXTREMES``.
    """
    if n <= limit:
        return np.arange(n)
    half = (limit - 2 * EXTREMES) // 2
    even = np.linspace(0, n - 1, half)
    dense = n - np.geomspace(1, n, half)
    ends = np.r_[np.arange(EXTREMES), np.arange(n - EXTREMES, n)]
    return np.unique(np.r_[even, dense, ends].round().astype(np.intp))
