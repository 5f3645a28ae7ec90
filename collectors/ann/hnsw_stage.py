"""A graph of neighbours, searched ever more widely."""

from collections.abc import Iterator
from typing import Any

from s2l.collectors.ann.faiss_library import faiss_library
from s2l.collectors.ann.pool import Pool
from s2l.collectors.ann.stage import Question


class HnswStage:
    """Searches with twice the ``efSearch`` each time, up to ``ef_search``.

    Each step is a search of its own, since faiss cannot go on with one: together they take up to
    twice as long as the last.
    """

    name = "hnsw"

    def __init__(self, index: Any, ef_search: int, width: int) -> None:
        faiss = faiss_library()
        self._index = index
        self._width = width
        self._steps = [faiss.SearchParametersHNSW(efSearch=ef) for ef in ladder(width, ef_search)]

    def steps(self, question: Question, pool: Pool) -> Iterator[Pool]:
        """A step for each ``efSearch``."""
        for parameters in self._steps:
            scores, rows = self._index.search(question.vector, self._width, params=parameters)
            yield Pool().merged(rows[0], scores[0], self._width)


def ladder(first: int, last: int) -> list[int]:
    """first, 2·first, 4·first … last; last alone where it is not above first."""
    found = []
    while first < last:
        found.append(first)
        first *= 2
    return [*found, last]
