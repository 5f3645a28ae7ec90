"""The best passages found so far."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Pool:
    """Rows of the corpus, the best first, and the negated score of each, so that costs rise.

    Tuples, not arrays: a pool is small, and merged between two steps of a search.
    """

    rows: tuple[int, ...] = ()
    costs: tuple[float, ...] = ()

    def merged(self, rows: Rows, scores: Scores, width: int) -> "Pool":
        """The best ``width`` of both; this very pool where nothing of the new gets in.

        ``rows`` are best first, padded with -1 as faiss does, and not in this pool.
        """
        if rows[0] < 0 or (len(self.rows) >= width and -scores[0] >= self.costs[-1]):
            return self
        all_rows, costs = list(self.rows), list(self.costs)
        for row, score in zip(rows.tolist(), scores.tolist(), strict=True):
            place = bisect_right(costs, -score)
            if row < 0 or place >= width:
                break
            all_rows.insert(place, row)
            costs.insert(place, -score)
        return Pool(tuple(all_rows[:width]), tuple(costs[:width]))

    def best(self, n: int) -> "Pool":
        """The first n."""
        return Pool(self.rows[:n], self.costs[:n])

    def scored_anew(self, scores: Scores) -> "Pool":
        """The same rows by other scores, one for each; equal ones stay in their order."""
        costs: Sequence[float] = (-scores).tolist()
        order = sorted(range(len(costs)), key=costs.__getitem__)
        return Pool(tuple(self.rows[i] for i in order), tuple(costs[i] for i in order))
