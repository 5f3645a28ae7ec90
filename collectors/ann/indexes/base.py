"""What a kind of index is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from s2l.collectors.ann.index_settings import IndexSettings, SearchSettings
from s2l.collectors.ann.stage import Stage
from s2l.collectors.ann.vectors import Matrix


class IndexKind(Protocol):
    """Builds indexes of its kind, and says in which stages they are searched.

    The metric of all is the inner product of unit vectors.
    """

    def build(self, vectors: Matrix, settings: IndexSettings, folder: Path) -> Any:
        """A faiss index of all vectors; what does not fit in its file goes into ``folder``."""

    def stages(
        self, index: Any, vectors: Matrix, settings: SearchSettings, width: int
    ) -> Sequence[Stage]:
        """The stages that find the best ``width``."""
