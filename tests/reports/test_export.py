"""Exports: the same figures in every format, and no cell that a spreadsheet would run."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2l.replayer.run import Run
from s2l.reports.export_formats import export_table, inert_cell
from s2l.reports.request_metrics import metric_table
from s2l.reports.scores import JUDGE, Score, ScoreSource, write_scores

MakeRun = Callable[..., Run]
STARTS = "=+-@\t\r"


@pytest.fixture
def run(synthetic: ModuleType, make_run: MakeRun) -> Run:
    found = make_run(
        synthetic.request(),
        synthetic.request(request_id="w", delivery="wait", output_text="=HYPERLINK(1)"),
        synthetic.failed("timeout", request_id="f", query_id="q1", error="+1\n@x | y"),
    )
    write_scores(found, JUDGE, [Score("stream-0", 1.0, "correct")], ScoreSource(model="m"))
    return found


def test_metrics_by_request(run: Run) -> None:
    first, _, failed = metric_table(run).to_pylist()
    expected = {
        "request_id": "stream-0",
        "start_intended_s": 0.0,
        "schedule_lag_s": 0.0,
        "ttft_s": 0.2,
        "ttft_service_s": 0.2,
        "ttft_user_s": 1.2,
        "tpot_s": 0.1,
        "e2e_s": 0.4,
        "e2e_user_s": 1.4,
        "prefill_hidden": 0.8,
        "exact_match": 1.0,
        "refusal": 0.0,
        "judge": 1.0,
        "prompt_tokens": 100,
    }
    assert {name: first[name] for name in expected} == pytest.approx(expected)
    assert failed["error_type"] == "timeout"
    latencies = ("ttft_s", "ttft_user_s", "tpot_s", "e2e_s", "exact_match", "judge", "refusal")
    assert [failed[name] for name in latencies] == [None] * 7


def test_all_tables_say_the_same(run: Run, tmp_path: Path) -> None:
    expected = metric_table(run)
    for kind in ("parquet", "json", "csv"):
        assert export_table(run, kind, tmp_path / kind) == 3
    assert pq.read_table(tmp_path / "parquet").equals(expected)
    assert json.loads((tmp_path / "json").read_bytes()) == expected.to_pylist()
    rows = list(csv.DictReader(io.StringIO((tmp_path / "csv").read_bytes().decode())))
    assert [float(row["ttft_s"]) for row in rows[:2]] == expected["ttft_s"].to_pylist()[:2]
    assert rows[2]["ttft_s"] == ""
    assert rows[1]["output_text"] == "'=HYPERLINK(1)"
    assert rows[2]["error"] == "'+1\n@x | y"


def test_markdown(run: Run, tmp_path: Path) -> None:
    export_table(run, "markdown", tmp_path / "m.md")
    text = (tmp_path / "m.md").read_text()
    assert "**This is a degraded run: 1 of 24 requests failed" in text
    assert "| TTFT, s | stream | 1 | n/a | n/a | n/a | n/a |" in text
    assert "| Succeeded | 1 of 2 | 1 of 1 |" in text
    assert "| Judged correct | 100 % | n/a |" in text
    assert text.index("degraded") < text.index("TTFT")


def test_tokens_are_not_summed_where_one_success_does_not_say(
    synthetic: ModuleType, make_run: MakeRun, tmp_path: Path
) -> None:
    silent = synthetic.request(request_id="s", query_id="q1", prompt_tokens=None)
    failed = synthetic.failed("timeout", request_id="f", query_id="q2") | {"output_tokens": 70}
    export_table(make_run(synthetic.request(), silent, failed), "markdown", tmp_path / "m.md")
    text = (tmp_path / "m.md").read_text()
    assert "| Prompt tokens | n/a |" in text
    assert "| Output tokens | 6 |" in text


def test_early_answers_are_on_their_own(
    synthetic: ModuleType, make_run: MakeRun, tmp_path: Path
) -> None:
    early = synthetic.request(request_id="e", answer_at="25%")
    export_table(make_run(synthetic.request(), early), "markdown", tmp_path / "m.md")
    assert "| | stream | stream at 25% |" in (tmp_path / "m.md").read_text()


def test_an_empty_run(synthetic: ModuleType, make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run()
    for kind in ("parquet", "json", "csv", "markdown"):
        assert export_table(run, kind, tmp_path / kind) == 0
    assert json.loads((tmp_path / "json").read_bytes()) == []


def test_a_failed_export_leaves_nothing(run: Run, tmp_path: Path) -> None:
    (run.path / "queries.parquet").unlink()
    with pytest.raises(Exception, match="queries"):
        export_table(run, "csv", tmp_path / "x.csv")
    assert not (tmp_path / "x.csv").exists()


@given(st.text() | st.builds("".join, st.tuples(st.sampled_from(STARTS), st.text())))
def test_no_cell_is_a_formula(text: str) -> None:
    cell = inert_cell(text)
    assert not cell.startswith(tuple(STARTS))
    assert cell in (text, f"'{text}")
    file = io.StringIO(newline="")
    csv.writer(file).writerow([cell, 1])
    [[back, _]] = list(csv.reader(io.StringIO(file.getvalue(), newline="")))
    assert back.replace("\r\n", "\n").removeprefix("'") == text.replace("\r\n", "\n").removeprefix(
        "'"
    )


@pytest.mark.parametrize("value", [-1.5, 0, None, True, "plain", "a=b", "1+1"])
def test_other_cells_stay(value: Any) -> None:
    assert inert_cell(value) is value


@pytest.mark.parametrize("text", [" =1", "\u00a0+1", "\n@x", "\uff1d1", "\uff20x"])
def test_disguised_formulas(text: str) -> None:
    assert inert_cell(text) == f"'{text}"
