"""Scores beside a run: kept by scorer, read back, damage named."""

from collections.abc import Callable
from types import ModuleType

import pytest

from s2l.replayer.run import Run, RunError
from s2l.reports.scores import (
    SCORE_SCHEMA,
    Score,
    ScoreSource,
    read_scores,
    read_sources,
    write_scores,
)

MakeRun = Callable[..., Run]


def test_a_run_without_scores(synthetic: ModuleType, make_run: MakeRun) -> None:
    run = make_run(synthetic.request())
    assert read_scores(run).equals(SCORE_SCHEMA.empty_table())
    assert read_sources(run) == {}


def test_scoring_again_replaces_only_that_scorer(synthetic: ModuleType, make_run: MakeRun) -> None:
    run = make_run(synthetic.request())
    first = [Score("stream-0", 1.0, "correct"), Score("gone", 0.0, "incorrect")]
    write_scores(run, "judge", first, ScoreSource(model="one"))
    write_scores(run, "semantic_similarity", [Score("stream-0", 0.5)], ScoreSource(model="mini"))
    write_scores(run, "judge", [Score("stream-0", None, None, "?")], ScoreSource(model="two"))
    assert read_scores(run).to_pylist() == [
        dict(zip(SCORE_SCHEMA.names, row, strict=True))
        for row in [
            ("stream-0", "judge", None, None, "?"),
            ("stream-0", "semantic_similarity", 0.5, None, None),
        ]
    ]
    assert {name: one.model for name, one in read_sources(run).items()} == {
        "judge": "two",
        "semantic_similarity": "mini",
    }


@pytest.mark.parametrize("name", ["scores.parquet", "scores.json"])
def test_damage_is_named(synthetic: ModuleType, make_run: MakeRun, name: str) -> None:
    run = make_run(synthetic.request())
    (run.path / name).write_bytes(b"no such thing")
    with pytest.raises(RunError, match=name):
        (read_scores if name.endswith("parquet") else read_sources)(run)
