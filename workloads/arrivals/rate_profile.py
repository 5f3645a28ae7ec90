"""Starts at a rate that changes with time: ramps and steps."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from s2l.workloads.arrivals.base import NEVER_US, Floats, OffsetsUs, check_count, whole_us
from s2l.workloads.arrivals.unit_gaps import unit_gaps

SYNTAX: Final = "ramp:1..20/60s or step:5x30s,10x30s"

_NUMBER: Final = r"[0-9]+(?:\.[0-9]+)?"
_RAMP: Final = re.compile(rf"({_NUMBER})\.\.({_NUMBER})/({_NUMBER})(s|m|h)")
_STEP: Final = re.compile(rf"({_NUMBER})x({_NUMBER})(s|m|h)")
_SECONDS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Segment:
    """A rate that goes from one value to another, evenly, in ``duration_s``."""

    from_qps: float
    to_qps: float
    duration_s: float

    @property
    def starts(self) -> float:
        """How many starts are expected in it."""
        return (self.from_qps + self.to_qps) / 2 * self.duration_s


@dataclass(frozen=True, slots=True)
class RateProfile:
    """Segments one after another; the last rate goes on where more is asked for.

    Gaps of mean 1 are counted off on the expected number of starts up to each moment, the
    integral of the rate. With ``burstiness`` 1 that is an inhomogeneous Poisson process by
    inversion (Devroye, Non-Uniform Random Variate Generation, VI.1.3).
    """

    segments: tuple[Segment, ...]
    burstiness: float = 1.0

    @property
    def ends_after_s(self) -> float:
        """The segments' durations in all."""
        return sum(segment.duration_s for segment in self.segments)

    def followed(self, recorded_us: Sequence[int]) -> int:
        """None: every gap is made."""
        return 0

    def __call__(
        self, n: int, rate_qps: float | None, seed: int, recorded_us: Sequence[int]
    ) -> OffsetsUs:
        """See ``ArrivalProcess``; ``NEVER_US`` where the rate had become 0 before."""
        check_count(n)
        if rate_qps is not None:
            raise ValueError("ramps and steps state their own rates; leave the rate out")
        gaps = unit_gaps(max(0, n - 1), self.burstiness, seed)
        expected = np.concatenate([np.zeros(min(n, 1)), np.cumsum(gaps)])
        times_s = self._inverse(expected)
        never = np.isinf(times_s)
        times_us = whole_us(np.where(never, 0.0, times_s) * 1e6)
        return np.where(never, NEVER_US, times_us)

    def _inverse(self, expected: Floats) -> Floats:
        """The moment, in seconds, by which so many starts are expected."""
        last = self.segments[-1].to_qps
        # What comes after the last segment is a segment that never ends.
        rates = np.array([s.from_qps for s in self.segments] + [last])
        slopes = np.array([(s.to_qps - s.from_qps) / s.duration_s for s in self.segments] + [0.0])
        begins_s = np.cumsum([0.0] + [s.duration_s for s in self.segments])
        reached = np.cumsum([0.0] + [s.starts for s in self.segments])
        at = np.searchsorted(reached, expected, side="right") - 1
        left, rate, slope = expected - reached[at], rates[at], slopes[at]
        # The root of rate t + slope t^2 / 2 = left, in the form that loses no digits.
        root = np.sqrt(np.maximum(rate * rate + 2 * slope * left, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            inside_s = np.where(left == 0, 0.0, 2 * left / (rate + root))
        found: Floats = begins_s[at] + inside_s
        if last == 0:  # what is expected beyond the end never comes
            found = np.where(expected >= reached[-1], math.inf, found)
        return found


def parse_profile(text: str, burstiness: float) -> RateProfile:
    """Read ``1..20/60s`` and ``5x30s,10x30s``; both may stand in one list.

    Raises:
        ValueError: a part is neither, or its rates cannot be.
    """
    segments = tuple(_parse_segment(part.strip()) for part in text.split(","))
    if segments[0].starts == 0:
        raise ValueError(f"{text!r} begins with a pause; leave it out")
    return RateProfile(segments, burstiness)


def _parse_segment(part: str) -> Segment:
    if (ramp := _RAMP.fullmatch(part)) is not None:
        low, high, duration, unit = ramp.groups()
    elif (step := _STEP.fullmatch(part)) is not None:
        low, duration, unit = step.groups()
        high = low
    else:
        raise ValueError(f"{part!r} is neither a ramp nor a step; write {SYNTAX}")
    duration_s = float(duration) * _SECONDS[unit]
    if duration_s == 0:
        raise ValueError(f"{part!r} lasts no time; give a duration above 0")
    return Segment(float(low), float(high), duration_s)
