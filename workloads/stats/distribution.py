"""The distribution of one quantity: figures, histogram and cumulative curve, ready to show."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

PERCENTILES: Final = (25, 50, 75, 90, 95, 99)
CURVE_POINTS: Final = 200
BINS: Final = 40


@dataclass(frozen=True, slots=True)
class Distribution:
    """Figures of n values in ``unit``.

    ``percentiles`` go by linear interpolation, None with fewer values than 1 / (1 - p).
    ``curve`` are (value, share of values up to it) at even shares; ``bins`` are (from, to, count).
    """

    unit: str
    n: int
    mean: float | None
    min: float | None
    max: float | None
    percentiles: dict[str, float | None]
    curve: tuple[tuple[float, float], ...]
    bins: tuple[tuple[float, float, int], ...]


def distribution(
    values: Sequence[float] | npt.NDArray[np.generic], unit: str, per_unit: float = 1.0
) -> Distribution:
    """The distribution of values of which ``per_unit`` make one ``unit``."""
    known = np.sort(np.asarray(values, dtype=np.float64)) / per_unit
    if known.size == 0:
        return Distribution(unit, 0, None, None, None, {f"p{p}": None for p in PERCENTILES}, (), ())
    return Distribution(
        unit=unit,
        n=int(known.size),
        mean=float(known.mean()),
        min=float(known[0]),
        max=float(known[-1]),
        percentiles={f"p{p}": _percentile(known, p) for p in PERCENTILES},
        curve=_curve(known),
        bins=_bins(known),
    )


def _percentile(known: npt.NDArray[np.float64], percent: int) -> float | None:
    if known.size * min(percent, 100 - percent) < 100:
        return None
    return float(np.percentile(known, percent))


def _curve(known: npt.NDArray[np.float64]) -> tuple[tuple[float, float], ...]:
    """Of many values every k-th, and always the last."""
    n = int(known.size)
    ranks = np.unique(np.linspace(1, n, min(n, CURVE_POINTS)).round().astype(np.int64))
    return tuple((float(known[rank - 1]), rank / n) for rank in ranks.tolist())


def _bins(known: npt.NDArray[np.float64]) -> tuple[tuple[float, float, int], ...]:
    """Even bins up to the 99th percentile; the last one holds the rest."""
    low, high = float(known[0]), float(np.percentile(known, 99))
    if high <= low:
        return ((low, float(known[-1]), int(known.size)),)
    counts, edges = np.histogram(known[known <= high], bins=BINS, range=(low, high))
    pairs = zip(edges.tolist(), edges[1:].tolist(), counts.tolist(), strict=False)
    found = [(start, end, n) for start, end, n in pairs]
    rest = int((known > high).sum())
    return tuple(found) + (((high, float(known[-1]), rest),) if rest else ())
