"""Semantic similarity: best cosine over the references, every text embedded once."""

import math
from collections.abc import Callable, Sequence
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pytest

from s2l.replayer.run import Run
from s2l.reports.request_metrics import request_scores
from s2l.reports.scores import SIMILARITY, ScoreSource, read_scores, read_sources, write_scores
from s2l.reports.similarity import similarities, similarity_scores

VECTORS = {"east": (2, 0), "north": (0, 3), "north-east": (1, 1), "west": (-1, 0), "void": (0, 0)}


class Embedder:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.seen += texts
        return np.array([VECTORS[text] for text in texts], dtype=np.float32)


def test_known_cosines() -> None:
    embed = Embedder()
    answers = ["east", "north-east", "west", "void", "east", " ", "north"]
    references = [["east"], ["north", "west"], ["east"], ["east"], ["north", " "], ["east"], []]
    found = similarities(answers, references, embed)
    half = math.sqrt(0.5)
    np.testing.assert_allclose(found, [1, half, -1, 0, 0, np.nan, np.nan], atol=1e-7)
    assert sorted(embed.seen) == ["east", "north", "north-east", "void", "west"]


def test_nothing_to_compare_loads_no_model() -> None:
    embed = Embedder()
    assert np.isnan(similarities(["east"], [[]], embed)).all()
    assert similarities([], [], embed).size == 0
    assert embed.seen == []


def test_scores_beside_a_run(synthetic: ModuleType, make_run: Callable[..., Run]) -> None:
    run = make_run(
        synthetic.request(request_id="a", output_text="north-east"),
        synthetic.request(request_id="b", query_id="q1", output_text="east"),
        synthetic.failed("timeout", request_id="c"),
        queries=[("q0", "where?", ["north"]), ("q1", "where?", [])],
    )
    references = {"q0": ["north"], "q1": []}
    scores = similarity_scores(run.requests(), references, Embedder())
    write_scores(run, SIMILARITY, scores, ScoreSource(model="tiny", requests=2))
    rows = {row["request_id"]: row for row in read_scores(run).to_pylist()}
    assert rows["a"]["value"] == pytest.approx(math.sqrt(0.5))
    assert rows["b"]["value"] is None
    assert rows["b"]["detail"] == "the query has no reference answers"
    assert set(rows) == {"a", "b"}
    values = request_scores(run.requests(), run)[SIMILARITY]
    np.testing.assert_allclose(values, [math.sqrt(0.5), np.nan, np.nan])
    assert read_sources(run)[SIMILARITY].model == "tiny"
