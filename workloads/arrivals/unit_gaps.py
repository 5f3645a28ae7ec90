"""Gaps between starts with a mean of 1: from bursty over random to even."""

import math
from typing import Final

import numpy as np

from s2l.workloads.arrivals.base import Floats
from s2l.workloads.arrivals.exact_math import exp, log

_SMALLEST: Final = 2.0**-54
_MORE_TRIES: Final = 1.5
"""Tries per gap that is wanted: about 0.7 to 0.9 of them are taken."""


def unit_gaps(n: int, burstiness: float, seed: int) -> Floats:
    """``n`` gaps of mean 1 from a gamma distribution whose shape is ``burstiness``.

    1 is the exponential distribution (a Poisson process), less is more bursty, more is more even,
    and infinity has every gap 1. Only ``random()`` is drawn from PCG64, whose stream NumPy keeps
    from version to version; the rest is exact arithmetic. More gaps begin with the same ones.

    Raises:
        ValueError: the shape is not above 0.
    """
    if not burstiness > 0:
        raise ValueError(f"burstiness is {burstiness}; it must be above 0 (1 is Poisson)")
    if math.isinf(burstiness):
        return np.ones(n)
    random = np.random.Generator(np.random.PCG64(seed))
    if burstiness == 1:
        return -log(1 - random.random(n))
    return _gamma(n, burstiness, random) / burstiness


def _gamma(n: int, shape: float, random: np.random.Generator) -> Floats:
    """Variates by rejection, in the order in which their tries were drawn."""
    found = np.empty(0)
    while found.size < n:
        tries = int((n - found.size) * _MORE_TRIES) + 16
        uniform = np.maximum(random.random((tries, 3)), _SMALLEST)
        found = np.concatenate([found, _accepted(shape, uniform)])
    return found[:n]


def _accepted(shape: float, uniform: Floats) -> Floats:
    """The gamma variates among the tries, which are three uniform numbers each.

    Shapes from 1 on: algorithm GB of Cheng, The generation of gamma variables with non-integral
    shape parameter, Applied Statistics 26 (1977). Below 1, a variate of shape + 1 times
    U^(1 / shape) (Devroye, Non-Uniform Random Variate Generation, IX.3.5).
    """
    alpha = shape if shape >= 1 else shape + 1
    first, second, third = uniform.T
    spread = math.sqrt(2 * alpha - 1)
    log_odds = (log(first) - log(1 - first)) / spread
    found = alpha * exp(log_odds)
    # ln 4 is written out: the one of the C library may differ in its last bit.
    bound = (alpha - 1.3862943611198906) + (alpha + spread) * log_odds - found
    taken = bound >= log(first * first * second)
    if shape < 1:
        found = found * exp(log(third) / shape)
    return found[taken]
