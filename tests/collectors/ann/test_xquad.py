import json
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from s2l.collectors.ann.embedder import SentenceEmbedder
from s2l.collectors.ann.exact import exact_rows
from s2l.collectors.ann.index import build_index, open_index
from s2l.collectors.ann.index_settings import IndexSettings, SearchSettings
from s2l.collectors.ann.progressive_search import ProgressiveSearch
from s2l.collectors.ann.stage import Question
from s2l.collectors.ann.vectors import unit_vectors

XQUAD: Final = Path(__file__).parents[4] / "shared" / "data" / "qa" / "xquad-en.json"
SETTINGS: Final = IndexSettings(lists=1)
"""All is searched: what is scored is the embedder, and the answer's way into the context."""


@pytest.mark.parametrize(
    ("n", "questions_of_all"),
    [(40, 225), pytest.param(240, 1190, marks=pytest.mark.slow)],
    ids=["part", "all"],
)
def test_recall_of_the_packaged_model_on_xquad(
    packaged: SentenceEmbedder, tmp_path: Path, n: int, questions_of_all: int
) -> None:
    """Whether the paragraph that a question is about is found among the first n of 240, and
    whether its answer stands in the context that a progressive search ends with."""
    if not XQUAD.is_file():
        pytest.skip(f"needs XQuAD in English (xquad-en.json) at {XQUAD}")
    paragraphs = [p for a in json.loads(XQUAD.read_text())["data"] for p in a["paragraphs"]][:n]
    asked = [(row, qa["question"]) for row, p in enumerate(paragraphs) for qa in p["qas"]]
    assert (len(paragraphs), len(asked)) == (n, questions_of_all)
    corpus = packaged.embed([p["context"] for p in paragraphs])
    questions = packaged.embed([text for _, text in asked])
    asked_vectors = unit_vectors(questions, [text for _, text in asked])
    vectors = unit_vectors(corpus, [str(row) for row in range(n)])
    found = exact_rows(asked_vectors, vectors, 10).tolist()

    def recall(k: int) -> float:
        hits = [row in rows[:k] for (row, _), rows in zip(asked, found, strict=True)]
        return sum(hits) / len(hits)

    assert recall(1) >= 0.87
    assert recall(5) >= 0.97
    assert recall(10) >= 0.98

    build_index(vectors, SETTINGS, tmp_path / "index", "xquad")
    index = open_index(vectors, SETTINGS, tmp_path / "index", "xquad")
    search = ProgressiveSearch(index.stages(SearchSettings(k=5), 5), 5)
    answers = [[a["text"] for a in qa["answers"]] for p in paragraphs for qa in p["qas"]]
    answered = 0
    for (_, text), vector, texts in zip(asked, asked_vectors, answers, strict=True):
        pool = search.run(Question(text, vector[np.newaxis]), lambda: 0).rows
        context = " ".join(paragraphs[row]["context"] for row in pool)
        answered += any(answer in context for answer in texts)
    print(f"the answer stands in the final pool: {answered / len(asked):.3f}")
    assert answered / len(asked) >= 0.97
