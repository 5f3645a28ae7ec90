"""Bootstrap intervals where queries were asked several times: whole queries are resampled.

Answers to the same query share its context, so they are no independent sample: resampled one by
one, 40 queries asked 25 times would pass for 1,000.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from s2l.reports.metrics import Codes, Floats

RESAMPLES: Final = 2_000
DIRECT_LIMIT: Final = 1_000
"""Up to so many values the resamples are really drawn."""


def numbered(codes: Codes) -> Codes | None:
    """The queries as 0, 1, 2... with none left out; None where each was asked once.

    Args:
        codes: a number from 0 on for each value, the same for the same query.
    """
    counts = np.bincount(codes)
    if counts.max(initial=0) <= 1:
        return None
    found: Codes = (np.cumsum(counts > 0) - 1)[codes]
    return found


def drawn_percentiles(
    sides: Sequence[Floats], codes: Codes, p: float, random: np.random.Generator
) -> Floats:
    """A percentile of each side in each of ``RESAMPLES`` resamples of the queries.

    Args:
        sides: one sample or several; value i of each belongs to query ``codes[i]``. No NaN.
        codes: from 0, with none left out.
        p: the percentile, 0 to 1, linear between values as NumPy's.
        random: draws the queries, the same ones for all sides.

    Returns:
        A row for each side.
    """
    draw = _drawn if codes.size <= DIRECT_LIMIT else _normal
    return draw(sides, codes, p, random)


def _drawn(sides: Sequence[Floats], codes: Codes, p: float, random: np.random.Generator) -> Floats:
    n = int(codes.max()) + 1
    draws = random.integers(0, n, (RESAMPLES, n)) + n * np.arange(RESAMPLES)[:, None]
    weights = np.bincount(draws.ravel(), minlength=n * RESAMPLES).reshape(RESAMPLES, n)
    return np.array([_weighted(side, codes, weights, p) for side in sides])


def _weighted(values: Floats, codes: Codes, weights: npt.NDArray[np.intp], p: float) -> Floats:
    """The percentile of the sample in which each query's values stand as often as its weight."""
    order = np.argsort(values, kind="stable")
    ordered, n = values[order], values.size
    until = np.cumsum(weights[:, codes[order]], axis=1, dtype=np.int64)
    place = (until[:, -1] - 1) * p
    below = np.floor(place).astype(np.int64)
    # All resamples one after another are one rising row, in which each has a stretch of its own.
    rows = np.arange(len(until))
    begins = rows * (int(until[:, -1].max()) + 1)
    flat = (until + begins[:, None]).ravel()
    low, high = (
        ordered[np.searchsorted(flat, rank + begins, side="right") - rows * n]
        for rank in (below, np.minimum(below + 1, until[:, -1] - 1))
    )
    found: Floats = low + (high - low) * (place - below)
    return found


def _normal(sides: Sequence[Floats], codes: Codes, p: float, random: np.random.Generator) -> Floats:
    """For many values: their ranks are jointly normal about p.

    With the spread of the shares of each query's values that lie below, as of a ratio estimated
    from clusters (Woodruff 1952; Cochran, Sampling Techniques, section 9A.1).
    """
    counts = np.bincount(codes)
    orders = [np.argsort(side, kind="stable") for side in sides]
    ordered = [side[order] for side, order in zip(sides, orders, strict=True)]
    until = [np.searchsorted(side, np.quantile(side, p), side="right") for side in ordered]
    below = [codes[order[:end]] for order, end in zip(orders, until, strict=True)]
    apart = np.array([np.bincount(mine, minlength=counts.size) - p * counts for mine in below])
    n = counts.size
    spread = apart @ apart.T / codes.size**2 * n / (n - 1)
    mean = np.full(len(sides), p)
    ranks = random.multivariate_normal(mean, spread, RESAMPLES, method="eigh").T
    positions = np.clip(ranks, 0, 1) * (codes.size - 1)
    at = np.arange(codes.size)
    return np.array([np.interp(x, at, y) for x, y in zip(positions, ordered, strict=True)])
