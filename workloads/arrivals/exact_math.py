"""Logarithm and exponential of arrays, with the same bits on every machine.

NumPy's own differ in the last place between processors, and one differing bit can move a whole
schedule by a microsecond. These use only what IEEE 754 rounds in one way: sums, products,
quotients, and scaling by powers of two.
"""

from typing import Final

import numpy as np

from s2l.workloads.arrivals.base import Floats

_LN2: Final = 0.6931471805599453
_LN2_HIGH: Final = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW: Final = float.fromhex("0x1.a39ef35793c76p-33")
_SQRT_HALF: Final = 0.7071067811865476
_LOG_TERMS: Final = 11
_EXP_TERMS: Final = 14
_SMALLEST_EXPONENT: Final = -745.0
"""Below it the exponential is less than any double above 0."""


def log(x: Floats) -> Floats:
    """Natural logarithm of positive numbers, within three units of the last place.

    With x = m 2^e and m near 1, ln x = e ln 2 + 2 artanh((m - 1) / (m + 1)).
    """
    mantissa, exponent = np.frexp(x)
    small = mantissa < _SQRT_HALF
    mantissa = np.where(small, 2 * mantissa, mantissa)
    exponent = np.where(small, exponent - 1, exponent).astype(np.float64)
    f = (mantissa - 1) / (mantissa + 1)
    square = f * f
    series = np.zeros_like(f)
    for term in range(_LOG_TERMS, -1, -1):
        series = series * square + 1 / (2 * term + 1)
    found: Floats = exponent * _LN2_HIGH + (exponent * _LN2_LOW + 2 * f * series)
    return found


def exp(x: Floats) -> Floats:
    """Exponential of numbers up to 700, within three units of the last place; 0 far below.

    With x = k ln 2 + r and \\|r\\| at most half of ln 2, e^x = 2^k times the Taylor series of e^r.
    """
    bounded = np.maximum(x, _SMALLEST_EXPONENT)
    k = np.rint(bounded / _LN2)
    r = (bounded - k * _LN2_HIGH) - k * _LN2_LOW
    series = np.ones_like(r)
    for term in range(_EXP_TERMS, 0, -1):
        series = series * (r / term) + 1
    scaled: Floats = np.where(x < _SMALLEST_EXPONENT, 0.0, np.ldexp(series, k.astype(np.int32)))
    return scaled
