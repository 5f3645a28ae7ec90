"""Seeded random numbers that depend on nothing but the seed and the request's number."""

from typing import Final

_MASK: Final = (1 << 64) - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15

FAULT, JITTER = 1, 2
"""What is drawn; each has a sequence of its own."""


def uniform(seed: int, what: int, number: int) -> float:
    """A number in [0, 1). The mixing function is that of SplitMix64 (Steele, Lea and Flood, 2014),
    applied to the seed and then to the request's number."""
    return _mix(_mix(seed * 8 + what) + number * _GOLDEN) / 2**64


def _mix(x: int) -> int:
    x = (x + _GOLDEN) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)
