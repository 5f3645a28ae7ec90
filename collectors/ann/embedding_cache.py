"""Keeps embeddings on disk, by the text's content and the model."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

import numpy as np

from s2l.collectors.ann.embedder import Embedder
from s2l.collectors.ann.errors import AnnError
from s2l.collectors.ann.vectors import Matrix, unit_vectors
from s2l.workloads.document import Document

_AT_A_TIME: Final = 512
"""Texts embedded between two writes: what an interruption costs."""

OnTexts = Callable[[int, int], None]
"""How many texts are embedded, of how many."""


class EmbeddingCache:
    """Vectors of one model in one folder, in files that are never changed."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._folder = folder / _file_name(embedder.name)
        self._embedder = embedder

    def embed(self, passages: Sequence[Document], progress: OnTexts | None = None) -> Matrix:
        """A unit vector for each passage; those not kept are made, in batches, and then kept.

        Raises:
            AnnError: a vector that is not finite, zero or of another size; a damaged file.
        """
        found = self._kept({p.text_sha256 for p in passages})
        todo = {p.text_sha256: p for p in passages if p.text_sha256 not in found}
        new = list(todo.values())
        for start in range(0, len(new), _AT_A_TIME):
            part = new[start : start + _AT_A_TIME]
            found |= self._made(part)
            if progress is not None:
                progress(start + len(part), len(new))
        return np.stack([found[p.text_sha256] for p in passages])

    def _made(self, part: Sequence[Document]) -> dict[str, Matrix]:
        ids = [passage.doc_id for passage in part]
        vectors = self._embedder.embed([passage.text or "" for passage in part])
        vectors = unit_vectors(vectors, ids, self._embedder.dimension)
        keys = [passage.text_sha256 for passage in part]
        self._keep(keys, vectors)
        return dict(zip(keys, vectors, strict=True))

    def _keep(self, keys: Sequence[str], vectors: Matrix) -> None:
        name = sha256("".join(keys).encode()).hexdigest()[:16]
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            number, temporary = tempfile.mkstemp(dir=self._folder, suffix=".part")
            try:
                with os.fdopen(number, "wb") as file:
                    np.savez(file, keys=np.array(keys), vectors=vectors)
                os.replace(temporary, self._folder / f"{name}.npz")
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)
                raise
        except OSError as error:
            raise AnnError(f"{self._folder}: {error.strerror}; name another --cache") from None

    def _kept(self, wanted: set[str]) -> dict[str, Matrix]:
        found: dict[str, Matrix] = {}
        for file in sorted(self._folder.glob("*.npz")):
            keys, vectors = self._read(file)
            rows = zip(keys, vectors, strict=True)
            found |= {key: vector for key, vector in rows if key in wanted}
        return found

    def _read(self, file: Path) -> tuple[list[str], Matrix]:
        try:
            with np.load(file, allow_pickle=False) as arrays:
                keys, vectors = arrays["keys"].tolist(), arrays["vectors"]
            if vectors.shape != (len(keys), self._embedder.dimension):
                raise ValueError(f"vectors of shape {vectors.shape}")
        except Exception as error:  # a damaged zip file raises what it happens to come to
            raise AnnError(f"{file}: damaged ({error}); delete it to have it made again") from None
        return keys, vectors


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_.@" else "_" for c in name)
