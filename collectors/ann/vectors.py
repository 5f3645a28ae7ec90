"""Embeddings as a matrix: checked, and of unit length."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from s2l.collectors.ann.errors import AnnError

Matrix = npt.NDArray[np.float32]
"""Shape (texts, dimensions)."""

_ROWS_AT_A_TIME: Final = 65_536


def unit_vectors(
    vectors: npt.NDArray[np.generic], ids: Sequence[str], dimension: int | None = None
) -> Matrix:
    """The vectors divided by their lengths, so that inner products are cosines.

    A C-contiguous float32 matrix is changed in place.

    Raises:
        AnnError: their number or size is not as it should be, or one is not finite or zero.
    """
    found: Matrix = np.ascontiguousarray(vectors, dtype=np.float32)
    if found.ndim != 2 or len(found) != len(ids):
        raise AnnError(f"embeddings of shape {vectors.shape} for {len(ids)} texts; need one each")
    if dimension is not None and found.shape[1] != dimension:
        raise AnnError(
            f"the embedding of {_name(ids, 0)} has {found.shape[1]} dimensions, not {dimension}"
        )
    for start in range(0, len(found), _ROWS_AT_A_TIME):
        _to_unit_length(found[start : start + _ROWS_AT_A_TIME], ids, start)
    return found


def _to_unit_length(part: Matrix, ids: Sequence[str], start: int) -> None:
    # In double precision: the square of a large float32 is not finite.
    lengths = np.sqrt(np.einsum("ij,ij->i", part, part, dtype=np.float64))
    for what, wrong in (("not finite", ~np.isfinite(lengths)), ("zero", lengths == 0)):
        if wrong.any():
            first = start + int(np.argmax(wrong))
            raise AnnError(
                f"the embedding of {_name(ids, first)} is {what} ({int(wrong.sum())} such); "
                "check the model"
            )
    part /= lengths[:, np.newaxis]


def _name(ids: Sequence[str], row: int) -> str:
    return repr(ids[row]) if row < len(ids) else "a text"
