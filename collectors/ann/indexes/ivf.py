"""Inverted lists: whole vectors, quantized ones, and lists on disk."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from s2l.collectors.ann.errors import AnnError
from s2l.collectors.ann.faiss_library import faiss_library
from s2l.collectors.ann.index_settings import IndexSettings, SearchSettings
from s2l.collectors.ann.ivf_stage import IvfStage
from s2l.collectors.ann.refine_stage import RefineStage
from s2l.collectors.ann.stage import Stage
from s2l.collectors.ann.vectors import Matrix

LISTS_FILE: Final = "lists.ivfdata"
_PQ_BITS: Final = 8


class IvfFlat:
    """Whole vectors in lists."""

    def build(self, vectors: Matrix, settings: IndexSettings, folder: Path) -> Any:
        """Trained on a sample drawn by the seed."""
        index = self._empty(vectors, settings)
        index.cp.seed = settings.seed
        index.cp.max_points_per_centroid = settings.training_points
        index.cp.min_points_per_centroid = 1
        index.train(vectors)
        index.add(vectors)
        return index

    def _empty(self, vectors: Matrix, settings: IndexSettings) -> Any:
        faiss = faiss_library()
        n, dimension = vectors.shape
        quantizer = faiss.IndexFlatIP(dimension)
        lists = settings.list_count(n)
        return faiss.IndexIVFFlat(quantizer, dimension, lists, faiss.METRIC_INNER_PRODUCT)

    def stages(
        self, index: Any, vectors: Matrix, settings: SearchSettings, width: int
    ) -> Sequence[Stage]:
        """One stage: list by list."""
        return [IvfStage(index, settings.lists_probed, width)]


class IvfPq(IvfFlat):
    """Product-quantized vectors in lists; the best are refined by the whole vectors."""

    def _empty(self, vectors: Matrix, settings: IndexSettings) -> Any:
        faiss = faiss_library()
        n, dimension = vectors.shape
        if n < 2**_PQ_BITS:
            raise AnnError(
                f"ivf-pq needs {2**_PQ_BITS} passages or more to learn its codes from, and there "
                f"are {n}; use ivf-flat"
            )
        layout = (settings.list_count(n), settings.code_size(dimension), _PQ_BITS)
        quantizer = faiss.IndexFlatIP(dimension)
        index = faiss.IndexIVFPQ(quantizer, dimension, *layout, faiss.METRIC_INNER_PRODUCT)
        index.pq.cp.seed = settings.seed
        index.pq.cp.min_points_per_centroid = 1
        return index

    def stages(
        self, index: Any, vectors: Matrix, settings: SearchSettings, width: int
    ) -> Sequence[Stage]:
        """List by list by quantized scores, then exact ones."""
        wide = max(width, settings.k * settings.refined)
        return [IvfStage(index, settings.lists_probed, wide), RefineStage(vectors)]


class IvfDisk(IvfFlat):
    """Whole vectors in lists that stay on disk and are mapped into memory as they are probed."""

    def build(self, vectors: Matrix, settings: IndexSettings, folder: Path) -> Any:
        """The lists go to a file of their own."""
        faiss = faiss_library()
        index = super().build(vectors, settings, folder)
        file = folder / LISTS_FILE
        lists = faiss.OnDiskInvertedLists(index.nlist, index.code_size, str(file))
        lists.merge_from_1(faiss.downcast_InvertedLists(index.invlists))
        index.replace_invlists(lists, True)
        lists.this.disown()
        return index


def forget_pages(file: Path) -> None:
    """Drop what the system holds of a file in memory, so that the next reads are from the disk.

    Pages that some process has mapped stay.
    """
    number = os.open(file, os.O_RDONLY)
    try:
        os.fsync(number)
        os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(number)
