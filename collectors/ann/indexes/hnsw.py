"""A graph of near neighbours in layers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from s2l.collectors.ann.faiss_library import faiss_library
from s2l.collectors.ann.hnsw_stage import HnswStage
from s2l.collectors.ann.index_settings import IndexSettings, SearchSettings
from s2l.collectors.ann.stage import Stage
from s2l.collectors.ann.vectors import Matrix


class Hnsw:
    """Whole vectors, linked."""

    def build(self, vectors: Matrix, settings: IndexSettings, folder: Path) -> Any:
        """On one core: the graph depends on the order in which vectors come into it."""
        faiss = faiss_library()
        index = faiss.IndexHNSWFlat(vectors.shape[1], settings.links, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = settings.ef_construction
        index.hnsw.rng = faiss.RandomGenerator(settings.seed)
        cores = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            index.add(vectors)
        finally:
            faiss.omp_set_num_threads(cores)
        return index

    def stages(
        self, index: Any, vectors: Matrix, settings: SearchSettings, width: int
    ) -> Sequence[Stage]:
        """One stage: ever more widely."""
        return [HnswStage(index, settings.ef_search, width)]
