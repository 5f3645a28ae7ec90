"""What is done before the first question is asked, so that nothing slow is in a search."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from s2l.collectors.ann.ann import Prepared, has_words
from s2l.collectors.ann.embedder import Embedder, SentenceEmbedder
from s2l.collectors.ann.embedding_cache import EmbeddingCache, OnTexts
from s2l.collectors.ann.exact import exact_rows, recall_at
from s2l.collectors.ann.index import content_hash
from s2l.collectors.ann.passages import PassageSettings, split_into_passages
from s2l.collectors.ann.progressive_search import Search
from s2l.collectors.ann.stage import Question
from s2l.collectors.ann.vectors import Matrix, unit_vectors
from s2l.workloads.document import Document
from s2l.workloads.query import Query

_RECALL_AT: Final = (1, 5, 10)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Passages and their unit vectors, row by row; ``content`` is a hash of texts and model."""

    passages: Sequence[Document]
    vectors: Matrix
    content: str


def embed_corpus(
    documents: Iterable[Document],
    embedder: SentenceEmbedder,
    settings: PassageSettings,
    cache: Path,
    progress: OnTexts | None = None,
) -> Corpus:
    """Split and embed; vectors that the cache has are not made again.

    Raises:
        AnnError: no text, an id that occurs twice, or a vector that cannot be searched.
    """
    passages = split_into_passages(documents, embedder.tokenizer(), settings)
    vectors = EmbeddingCache(cache, embedder).embed(passages, progress)
    return Corpus(passages, vectors, content_hash(passages, embedder.name))


def prepare_questions(
    queries: Sequence[Query], embedder: Embedder, vectors: Matrix, k: int
) -> dict[str, Prepared]:
    """Embed all questions that have words, and search exactly for each; by query id.

    Raises:
        AnnError: a vector that is not finite, zero or of another size than the corpus's.
    """
    asked = [query for query in queries if has_words(query.text)]
    if not asked:
        return {}
    found = embedder.embed_questions([query.text for query in asked])
    asked_vectors = unit_vectors(found, [query.query_id for query in asked], vectors.shape[1])
    exact = exact_rows(asked_vectors, vectors, k).tolist()
    questions = [
        Question(query.text, vector)
        for query, vector in zip(asked, asked_vectors[:, np.newaxis], strict=True)
    ]
    return {
        query.query_id: Prepared(number, question, tuple(rows))
        for number, (query, question, rows) in enumerate(zip(asked, questions, exact, strict=True))
    }


def measured_recall(
    searches: Sequence[Search], prepared: Mapping[str, Prepared], k: int
) -> dict[str, float]:
    """Recall of the searches' final documents against exact search, over all questions.

    At 1, 5 and 10 as far as k goes, and at k. None are there without a question.
    """
    if not prepared:
        return {}
    found = [search.rows for search in searches]
    exact = [one.exact for one in prepared.values()]
    depths = sorted({n for n in (*_RECALL_AT, k) if n <= k})
    return {str(n): round(recall_at(found, exact, n), 4) for n in depths}


def no_time() -> int:
    """The clock of a search that is not timed."""
    return 0
