"""Exact scores in place of those of quantized vectors."""

from collections.abc import Iterator

import numpy as np

from s2l.collectors.ann.pool import Pool
from s2l.collectors.ann.stage import Question
from s2l.collectors.ann.vectors import Matrix


class RefineStage:
    """Scores the whole pool by the vectors themselves, in one step."""

    name = "refine"

    def __init__(self, vectors: Matrix) -> None:
        self._vectors = vectors

    def steps(self, question: Question, pool: Pool) -> Iterator[Pool]:
        """One step."""
        rows = np.array(pool.rows, dtype=np.int64)
        yield pool.scored_anew(self._vectors[rows] @ question.vector[0])
