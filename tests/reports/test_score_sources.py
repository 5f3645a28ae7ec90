from pathlib import Path
from types import ModuleType

from s2l.replayer.run import Run
from s2l.reports.html import render
from s2l.reports.page import RunView
from s2l.reports.scores import JUDGE, SIMILARITY, Score, ScoreSource, write_scores
from s2l.reports.summary import summarize


def test_a_report_says_who_judged_and_how(synthetic: ModuleType, tmp_path: Path) -> None:
    run = Run.open(synthetic.realistic(tmp_path / "run"))
    grades = {"stream-0": "correct", "stream-1": "incorrect", "wait-0": "not_attempted"}
    scores = [Score(name, float(label == "correct"), label) for name, label in grades.items()]
    source = ScoreSource(
        model="gpt-judge",
        url="http://127.0.0.1:9/v1",
        prompt="Grade <b>this</b>.",
        requests=3,
        cached_requests=1,
        prompt_tokens=1_200,
        completion_tokens=9,
    )
    write_scores(run, JUDGE, scores, source)
    near = [Score("stream-0", 0.5), Score("stream-1", 0.7), Score("wait-0", None)]
    write_scores(run, SIMILARITY, near, ScoreSource(model="minilm"))
    view = RunView.of(run)
    cells = {row.label: row.cells for row in view.quality()}
    assert cells["Judged correct"] == ("50 %", "0 %")
    assert cells["Judged incorrect"] == ("50 %", "0 %")
    assert cells["Judged not attempted"] == ("0 %", "100 %")
    assert cells["Semantic similarity"] == ("60 %", "n/a")
    page = render([view])
    assert (
        "Judge: by gpt-judge at http://127.0.0.1:9/v1; 3 requests, 1 cached; "
        "1,200 prompt tokens and 9 completion tokens." in page
    )
    assert "Grade &lt;b&gt;this&lt;/b&gt;." in page
    quality = summarize(run).deliveries[0].quality
    assert quality.others == {"judge": 0.5, "semantic_similarity": 0.6}
    assert quality.n_others == {"judge": 2, "semantic_similarity": 2}
    assert {"judge", "semantic_similarity"} <= set(view.rows.columns)
