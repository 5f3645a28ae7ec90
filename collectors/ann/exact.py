"""Exact search, and how much of what it finds another search finds."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from s2l.collectors.ann.faiss_library import faiss_library
from s2l.collectors.ann.vectors import Matrix


def exact_rows(questions: Matrix, vectors: Matrix, k: int) -> npt.NDArray[np.int64]:
    """The rows of the k nearest vectors for each question, best first.

    Shape (questions, min(k, vectors)): a corpus smaller than k pads nothing.
    """
    faiss = faiss_library()
    k = min(k, len(vectors))
    rows: npt.NDArray[np.int64]
    _, rows = faiss.knn(questions, vectors, k, metric=faiss.METRIC_INNER_PRODUCT)
    return rows


def recall(found: Sequence[int], exact: Sequence[int]) -> float:
    """The share of the exact rows that are among those found."""
    return len(set(found) & set(exact)) / len(exact) if exact else 1.0


def recall_at(found: Sequence[Sequence[int]], exact: Sequence[Sequence[int]], k: int) -> float:
    """The mean over questions of the recall of the first k."""
    return float(np.mean([recall(f[:k], e[:k]) for f, e in zip(found, exact, strict=True)]))
