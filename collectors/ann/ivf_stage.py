"""Inverted lists, the nearest first."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from s2l.collectors.ann.faiss_library import faiss_library
from s2l.collectors.ann.pool import Pool
from s2l.collectors.ann.stage import Question


class IvfStage:
    """Searches list by list what ``index.search`` searches at once, with the same result."""

    name = "ivf"

    def __init__(self, index: Any, lists_probed: int, width: int) -> None:
        faiss = faiss_library()
        self._index = index
        self._quantizer = faiss.downcast_index(index.quantizer)
        self._probed = min(lists_probed, index.nlist)
        self._width = width
        self._one_list = faiss.SearchParametersIVF(nprobe=1)
        self._pointer = faiss.swig_ptr
        # As index.search does: lists on disk are read ahead, all that are going to be probed.
        # An index on a GPU has no such lists.
        inverted = getattr(index, "invlists", None)
        self._prefetch = inverted.prefetch_lists if inverted is not None else None

    def steps(self, question: Question, pool: Pool) -> Iterator[Pool]:
        """A step for each list."""
        distances, lists = self._quantizer.search(question.vector, self._probed)
        lists, distances = lists[0], distances[0]
        pointer, width, vector = self._pointer, self._width, question.vector
        if self._prefetch is not None:
            self._prefetch(pointer(lists), len(lists))
        scores, rows = np.empty(width, np.float32), np.empty(width, np.int64)
        outputs = pointer(scores), pointer(rows)
        # faiss's Python method takes no search parameters, and nprobe of the index is shared by
        # all threads; the method below it is the same without the checks.
        search = self._index.search_preassigned_c
        arguments = (1, pointer(vector), width)
        for i in range(len(lists)):
            nearest = pointer(lists[i : i + 1]), pointer(distances[i : i + 1])
            search(*arguments, *nearest, *outputs, False, self._one_list)
            pool = pool.merged(rows, scores, width)
            yield pool
