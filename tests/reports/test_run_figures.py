import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest

from s2l.replayer.run import SERVER_SCHEMA, Run
from s2l.reports.figure import Figure
from s2l.reports.gantt_chart import ROW_LIMIT, chosen_rows, gantt
from s2l.reports.page import RunView
from s2l.reports.server_table import server_figures

MakeRun = Callable[..., Run]


def points(figure: Figure) -> list[dict]:
    """All rows of data in a figure."""
    parts = [figure.spec, *figure.spec["layer"]]
    inline = [part["data"]["values"] for part in parts if "values" in part.get("data", {})]
    return [row for rows in (*inline, *figure.spec.get("datasets", {}).values()) for row in rows]


@pytest.fixture
def view(synthetic: ModuleType, tmp_path: Path) -> RunView:
    return RunView.of(Run.open(synthetic.complete(tmp_path / "run")))


def test_all_sections_have_their_figures(view: RunView) -> None:
    found = {
        name: [figure.key for figure in getattr(view.figures, name)]
        for name in view.figures.__dataclass_fields__
    }
    assert found == {
        "ttft": ["ttft"],
        "phases": [],
        "gain": ["gain"],
        "tokens": ["prefill-hidden", "tokens"],
        "throughput": ["throughput", "goodput"],
        "chunk_gaps": ["chunk-gaps"],
        "curve": ["curve-token_f1", "curve-contains_answer"],
        "server": ["server-running", "server-waiting", "server-kv_usage"],
        "client": ["schedule-lag", "loop-lag", "in-flight", "client-cpu"],
        "requests": ["gantt-stream", "gantt-wait"],
        "workload": ["retrieval", "arrival-gaps", "chunks-per-query"][:0],
    }


def test_an_old_run_has_fewer(realistic: Run) -> None:
    figures = RunView.of(realistic).figures
    assert figures.server == figures.curve == ()
    assert [figure.key for figure in figures.client] == ["schedule-lag"]
    assert [figure.key for figure in figures.workload] == ["retrieval", "arrival-gaps"]


def test_gains_are_drawn_with_a_line_at_one(view: RunView) -> None:
    gains = [row["gain"] for row in points(view.figures.gain[0])]
    assert gains.count(1.0) == 1
    assert len(gains) == 10 + 1
    assert gains[:10] == sorted(gains[:10])


def test_the_curve_has_a_point_for_each_moment(view: RunView) -> None:
    rows = points(view.figures.curve[0])
    moments = ["25%", "50%", "75%", "100%"]
    assert [(row["delivery"], row["at"]) for row in rows] == [
        (delivery, moment) for delivery in ("stream", "wait") for moment in moments
    ]
    assert [row["s"] for row in rows[:4]] == sorted(row["s"] for row in rows[:4])
    table = view.curve()
    assert table is not None
    assert [row[:3] for row in table.rows[:2]] == [
        ("25%", "stream", "12 of 12"),
        ("50%", "stream", "12 of 12"),
    ]


def test_tokens_add_up(view: RunView) -> None:
    parts: dict[str, dict[str, int]] = {}
    for row in points(view.figures.tokens[1]):
        parts.setdefault(row["delivery"], {})[row["kind"]] = row["tokens"]
    assert parts == {
        "stream": {"reused": 12 * 680, "left to prefill when due": 12 * 100, "discarded": 12 * 8},
        "wait": {"left to prefill when due": 10 * 780},
    }


def test_client_cpu_is_used_per_time(view: RunView) -> None:
    cpu = {row["value"] for row in points(view.figures.client[3])}
    assert cpu == {0.3}


def test_the_gantt_keeps_the_slowest_and_some_that_failed(synthetic: ModuleType) -> None:
    random = np.random.default_rng(2)
    rows = [
        synthetic.timed(f"q{i}", "stream", i * 100_000, ttft_s)
        for i, ttft_s in enumerate(random.lognormal(0, 1, 1_000).tolist())
    ]
    rows[77] = synthetic.failed("timeout", query_id="q77", end_us=9_000_000)
    requests = synthetic.request_table(*rows)
    chosen = chosen_rows(requests)
    assert chosen.size <= ROW_LIMIT
    ttft = np.array([row["first_token_us"] or 0 for row in rows]) - np.array(
        [row["context_intended_us"] for row in rows]
    )
    assert set(np.argsort(ttft)[-10:]) <= set(chosen)
    assert 77 in chosen
    found = gantt(requests, "stream", 0, 200.0)
    assert found is not None
    spec, shown = found
    assert shown == chosen.size
    assert '"part": "failed"' in json.dumps(spec)


def test_a_gantt_needs_requests(synthetic: ModuleType) -> None:
    assert gantt(synthetic.request_table(), "wait", 0, 1.0) is None
    never = synthetic.failed("unsent", context_intended_us=0, end_us=None)
    assert gantt(synthetic.request_table(never), "stream", 0, 1.0) is None


def test_server_counters_rise_and_restart() -> None:
    rows = [
        {"delivery": "stream", "time_us": at, "name": name, "value": value}
        for name, values in {
            "preemptions": [3.0, 5.0, 1.0],
            "kv_usage": [0.25, 0.75, 0.5],
            "prefix_queries": [100.0, 300.0, 500.0],
            "prefix_hits": [0.0, 50.0, 100.0],
        }.items()
        for at, value in enumerate(values)
    ]
    found = server_figures(pa.Table.from_pylist(rows, SERVER_SCHEMA), ["stream", "wait"])
    assert [(row.label, row.cells) for row in found] == [
        ("KV cache in use", ("75 %", "n/a")),
        ("Preemptions", ("3", "n/a")),
        ("Prefix cache hits", ("25 %", "n/a")),
    ]
    assert server_figures(SERVER_SCHEMA.empty_table(), ["stream"]) == []
