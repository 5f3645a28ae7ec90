import json
from pathlib import Path
from typing import Final

import pytest

from s2l.collectors.ann.embedder import SentenceEmbedder
from s2l.collectors.ann.exact import exact_rows
from s2l.collectors.ann.vectors import unit_vectors

XQUAD: Final = Path(__file__).parents[4] / "shared" / "data" / "qa" / "xquad-en.json"


@pytest.mark.parametrize(
    ("n", "questions_of_all"),
    [(40, 225), pytest.param(240, 1190, marks=pytest.mark.slow)],
    ids=["part", "all"],
)
def test_recall_of_the_packaged_model_on_xquad(
    packaged: SentenceEmbedder, n: int, questions_of_all: int
) -> None:
    """Whether the paragraph that a question is about is found among the first n of 240."""
    pytest.importorskip("faiss", reason="needs faiss-cpu")
    if not XQUAD.is_file():
        pytest.skip(f"needs XQuAD in English (xquad-en.json) at {XQUAD}")
    paragraphs = [p for a in json.loads(XQUAD.read_text())["data"] for p in a["paragraphs"]][:n]
    asked = [(row, qa["question"]) for row, p in enumerate(paragraphs) for qa in p["qas"]]
    assert (len(paragraphs), len(asked)) == (n, questions_of_all)
    corpus = packaged.embed([p["context"] for p in paragraphs])
    questions = packaged.embed([text for _, text in asked])
    found = exact_rows(
        unit_vectors(questions, [text for _, text in asked]),
        unit_vectors(corpus, [str(row) for row in range(n)]),
        10,
    ).tolist()

    def recall(k: int) -> float:
        hits = [row in rows[:k] for (row, _), rows in zip(asked, found, strict=True)]
        return sum(hits) / len(hits)

    assert recall(1) >= 0.87
    assert recall(5) >= 0.97
    assert recall(10) >= 0.98
