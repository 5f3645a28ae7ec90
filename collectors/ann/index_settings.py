"""How an index is built."""

import math
from dataclasses import dataclass
from typing import Final

from s2l.collectors.ann.errors import AnnError

_POINTS_PER_LIST: Final = 39
"""Fewer than this many training points for each centroid make poor centroids (faiss warns)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """``lists`` of an IVF (None: by the corpus's size), ``code_bytes`` of a product quantizer
    (None: one for eight dimensions), ``links`` and ``ef_construction`` of an HNSW graph.

    ``training_points`` for each centroid are drawn at most.
    """

    kind: str = "ivf-flat"
    lists: int | None = None
    code_bytes: int | None = None
    links: int = 32
    ef_construction: int = 200
    training_points: int = 256
    seed: int = 0

    def list_count(self, n: int) -> int:
        """The number of lists for ``n`` vectors: √n, and no more than they can be trained for.

        Raises:
            AnnError: more lists are asked for than there are vectors.
        """
        if self.lists is None:
            return max(1, min(round(math.sqrt(n)), n // _POINTS_PER_LIST))
        if not 1 <= self.lists <= n:
            raise AnnError(f"{self.lists} lists for {n} passages: give between 1 and {n}")
        return self.lists

    def code_size(self, dimension: int) -> int:
        """Bytes of a quantized vector.

        Raises:
            AnnError: the dimensions cannot be shared out evenly among as many.
        """
        size = self.code_bytes or max(m for m in range(1, dimension // 8 + 2) if not dimension % m)
        if dimension % size:
            raise AnnError(f"codes of {size} bytes: {dimension} dimensions are no multiple of that")
        return size


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """How far a search goes.

    ``k`` documents are shown. IVF probes ``lists_probed`` lists, HNSW ends with ``ef_search``.
    Quantized scores are refined for the best ``refined`` times k; a reranker takes the best
    ``reranked`` (None: k). A stage ends early after ``stop_when`` steps without a change.
    """

    k: int = 5
    lists_probed: int = 32
    ef_search: int = 128
    refined: int = 4
    reranked: int | None = None
    stop_when: int | None = None

    def __post_init__(self) -> None:
        counts = {
            "k": self.k,
            "lists_probed": self.lists_probed,
            "ef_search": self.ef_search,
            "refined": self.refined,
            "reranked": self.reranked,
            "stop_when": self.stop_when,
        }
        for name, value in counts.items():
            if value is not None and value < 1:
                raise AnnError(f"{name} is {value}: give 1 or more")
        if self.reranked is not None and self.reranked < self.k:
            raise AnnError(f"{self.reranked} documents reranked and {self.k} shown: give no fewer")
