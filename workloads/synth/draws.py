"""Drawing from known shapes so that even small samples have them.

Values are drawn in blocks. Within a block of n, each quantity takes one value out of every n-th
part of its distribution, so that its mean and percentiles are those of the distribution up to a
block's grain, whatever the seed; which query gets which value is chance, by correlated normals
whose ranks decide (Iman and Conover, 1982).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_NORMAL = NormalDist()


class Source:
    """Chance, the same on every machine: of PCG64, doubles alone are used."""

    def __init__(self, *seed: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(list(seed)))

    def uniforms(self, n: int) -> Floats:
        """n doubles in [0, 1)."""
        return self._generator.random(n)

    def normals(self, n: int) -> Floats:
        """n standard normal values, by inversion."""
        return normal_scores(np.clip(self.uniforms(n), 1e-12, 1 - 1e-12))

    def strata(self, order: Floats) -> Floats:
        """One uniform out of each n-th of (0, 1), ranked as the values of ``order`` are."""
        n = len(order)
        ranks = np.empty(n, dtype=np.int64)
        ranks[np.argsort(order, kind="stable")] = np.arange(n)
        return (ranks + self.uniforms(n)) / max(1, n)


def normal_scores(uniforms: Floats) -> Floats:
    """The standard normal quantile of each of them."""
    return np.array([_NORMAL.inv_cdf(u) for u in uniforms.tolist()], dtype=np.float64)


def correlated(own: Floats, common: Floats, share: float) -> Floats:
    """Normal values whose correlation with ``common`` is ``share``."""
    return share * common + math.sqrt(1 - share * share) * own


@dataclass(frozen=True, slots=True)
class Curve:
    """A positive distribution by some of its quantiles.

    Between them, the logarithm runs straight against the normal score: between two knots the
    distribution is lognormal. ``knots`` are (probability, value), both rising; values beyond the
    outer knots do not occur.
    """

    knots: tuple[tuple[float, float], ...]

    def quantiles(self, uniforms: Floats) -> Floats:
        """The value at each probability."""
        scores = [_NORMAL.inv_cdf(p) for p, _ in self.knots]
        logs = [math.log(value) for _, value in self.knots]
        clipped = np.clip(uniforms, self.knots[0][0], self.knots[-1][0])
        return np.exp(np.interp(normal_scores(clipped), scores, logs))


@dataclass(frozen=True, slots=True)
class Counts:
    """A distribution of whole numbers from ``first`` on, by weights."""

    first: int
    weights: tuple[float, ...]

    def quantiles(self, uniforms: Floats) -> Ints:
        """The number at each probability."""
        edges = np.cumsum(self.weights) / sum(self.weights)
        places = np.searchsorted(edges, uniforms, side="right")
        return self.first + np.minimum(places, len(self.weights) - 1).astype(np.int64)


def shares(weights: Floats, total: int) -> tuple[int, ...]:
    """``total`` cut into whole parts by weight, each at least 1 where there is enough."""
    n = len(weights)
    if n == 0:
        return ()
    floor = 1 if total >= n else 0
    edges = np.rint(np.cumsum(weights) / weights.sum() * (total - floor * n)).astype(np.int64)
    return tuple((np.diff(edges, prepend=0) + floor).tolist())


def blocks(n: int, size: int) -> Sequence[tuple[int, int]]:
    """(number, length) of the blocks that n values are drawn in; none is much below ``size``."""
    count = max(1, round(n / size)) if n else 0
    edges = [n * i // count for i in range(count + 1)] if count else [0]
    return [(i, edges[i + 1] - edges[i]) for i in range(count)]
