"""All kinds of index, by name."""

from typing import Final

from s2l.collectors.ann.errors import AnnError
from s2l.collectors.ann.indexes.base import IndexKind
from s2l.collectors.ann.indexes.hnsw import Hnsw
from s2l.collectors.ann.indexes.ivf import IvfDisk, IvfFlat, IvfPq

INDEX_KINDS: Final[dict[str, IndexKind]] = {
    "ivf-flat": IvfFlat(),
    "ivf-pq": IvfPq(),
    "ivf-disk": IvfDisk(),
    "hnsw": Hnsw(),
}


def index_kind(name: str) -> IndexKind:
    """The kind of this name. Raises AnnError that lists the choices."""
    if name not in INDEX_KINDS:
        raise AnnError(f"index {name!r} is not one of {', '.join(INDEX_KINDS)}")
    return INDEX_KINDS[name]
