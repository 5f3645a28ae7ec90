"""A small corpus whose vectors are known, and the packaged model."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from s2l.collectors.ann.embedder import SentenceEmbedder
from s2l.collectors.ann.vectors import Matrix, unit_vectors
from s2l.workloads.document import Document


@pytest.fixture(scope="session")
def packaged() -> SentenceEmbedder:
    return SentenceEmbedder.open()


@pytest.fixture(scope="session")
def vectors() -> Matrix:
    """3,000 of 32 dimensions, in clusters as real ones are."""
    chance = np.random.default_rng(0)
    centres = chance.standard_normal((60, 32))
    drawn = centres[chance.integers(60, size=3000)] + 0.5 * chance.standard_normal((3000, 32))
    return unit_vectors(drawn, [""] * 3000)


@pytest.fixture(scope="session")
def questions(vectors: Matrix) -> Matrix:
    chance = np.random.default_rng(1)
    return unit_vectors(vectors[:40] + 0.1 * chance.standard_normal((40, 32)), [""] * 40)


@pytest.fixture(scope="session")
def passages_of() -> Callable[[Sequence[str]], list[Document]]:
    def made(texts: Sequence[str]) -> list[Document]:
        return [Document.of_text(url=f"u{i}", title="", text=t) for i, t in enumerate(texts)]

    return made
