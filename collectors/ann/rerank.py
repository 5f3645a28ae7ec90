"""Judges question and passage together, the best found so far again."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import numpy as np

from s2l.collectors.ann.embedder import sentence_transformers_library
from s2l.collectors.ann.errors import AnnError
from s2l.collectors.ann.model_source import find_model
from s2l.collectors.ann.pool import Pool, Scores
from s2l.collectors.ann.stage import Question
from s2l.workloads.document import Document
from s2l.workloads.errors import one_line

_HEAD: Final = "ForSequenceClassification"
"""What transformers calls a model with the part that scores."""


class PairScorer(Protocol):
    """Says how well passages answer a question; threads share it."""

    @property
    def name(self) -> str:
        """What the trace calls it."""

    def scores(self, question: str, texts: Sequence[str]) -> Scores:
        """A score for each text, higher for a better one."""


class CrossEncoderScorer:
    """A cross-encoder of sentence-transformers."""

    def __init__(self, name: str, model: Any) -> None:
        self.name = name
        self._model = model

    @classmethod
    def open(cls, model: str, *, device: str = "cpu") -> "CrossEncoderScorer":
        """Load a local folder, or a hub model by its name.

        Raises:
            AnnError: there is no such model, it is of another kind, or the package is missing.
        """
        source, library = find_model(model), sentence_transformers_library()
        try:
            loaded = source.loaded(library.CrossEncoder, device)
        except Exception as error:  # the package raises nothing narrower
            text = one_line(error)[:200]
            raise AnnError(f"{model}: cannot be loaded as a cross-encoder: {text}") from None
        _check_head(loaded.transformers_model, model)
        found = cls(source.name, loaded)
        _check(found.scores("a question", ["a passage"]), 1, source.name)
        return found

    def scores(self, question: str, texts: Sequence[str]) -> Scores:
        """The model's score of each pair."""
        pairs = [(question, text) for text in texts]
        found = self._model.predict(pairs, show_progress_bar=False)
        return np.asarray(found, dtype=np.float32)


class RerankStage:
    """Orders the best ``depth`` by a scorer, in one step; those behind are dropped."""

    name = "rerank"

    def __init__(self, scorer: PairScorer, passages: Sequence[Document], depth: int) -> None:
        self._scorer = scorer
        self._passages = passages
        self._depth = depth

    def steps(self, question: Question, pool: Pool) -> Iterator[Pool]:
        """One step.

        Raises:
            AnnError: the scorer's scores are not one finite number for each passage.
        """
        best = pool.best(self._depth)
        texts = [self._passages[row].text or "" for row in best.rows]
        scores = self._scorer.scores(question.text, texts)
        _check(scores, len(best.rows), self._scorer.name)
        yield best.scored_anew(scores)


def _check(scores: Scores, n: int, name: str) -> None:
    if scores.shape != (n,) or not np.isfinite(scores).all():
        raise AnnError(
            f"{name}: its scores are not one finite number for each passage; give a cross-encoder "
            "with one output"
        )


def _check_head(model: Any, name: str) -> None:
    """Another model gets a head of random weights, and only a note of that."""
    saved = model.config.architectures or [_HEAD]
    if type(model).__name__.endswith(_HEAD) and not any(one.endswith(_HEAD) for one in saved):
        raise AnnError(f"{name}: is no cross-encoder but a {saved[0]}, which scores no pairs")
