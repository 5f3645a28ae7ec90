"""Turns texts into vectors; the one module that imports sentence_transformers."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Protocol

import numpy as np

from s2l.collectors.ann.errors import AnnError, missing
from s2l.collectors.ann.model_source import PACKAGED, find_model
from s2l.collectors.ann.vectors import Matrix
from s2l.workloads.errors import one_line


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

    def embed_questions(self, texts: Sequence[str]) -> Matrix:
        """The same for what texts are searched for with, where a model makes a difference."""


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
        """Load the packaged model, a local folder, or a hub model by its name (``find_model``).

        Raises:
            AnnError: there is no such model, or a package is missing.
        """
        source, library = find_model(model), sentence_transformers_library()
        try:
            loaded = source.loaded(library.SentenceTransformer, device)
        except Exception as error:  # the package raises nothing narrower
            text = one_line(error)[:200]
            raise AnnError(f"{model}: cannot be loaded as an embedding model: {text}") from None
        return cls(f"{source.name}@{_digest(loaded)}", loaded, batch_size)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """A row for each text, with the model's prompt for documents where it has one."""
        return self._made(self._model.encode_document, texts)

    def embed_questions(self, texts: Sequence[str]) -> Matrix:
        """A row for each text, with the model's prompt for queries where it has one."""
        return self._made(self._model.encode_query, texts)

    def _made(self, encode: Callable[..., Matrix], texts: Sequence[str]) -> Matrix:
        found = encode(
            list(texts),
            batch_size=self._batch_size,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return found.astype(np.float32, copy=False)

    @property
    def seen_tokens(self) -> int | None:
        """How many tokens of a text it sees, its own special ones left out; None: all."""
        most: int | None = self._model.max_seq_length
        return most and most - self.tokenizer().num_special_tokens_to_add(False)

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


def _digest(model: Any) -> str:
    """Of the weights and of how they are used, so that a changed model has another name."""
    digest = sha256(repr(model).encode())
    if prompts := {name: prompt for name, prompt in model.prompts.items() if prompt}:
        digest.update(repr(prompts).encode())
    for key, weights in model.state_dict().items():
        digest.update(key.encode())
        digest.update(weights.detach().cpu().contiguous().view(-1).numpy().data)
    return digest.hexdigest()[:12]
