import base64
import hashlib
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from s2l.replayer.run import Run
from s2l.reports.ccdf_chart import POINT_LIMIT, ttft_ccdf
from s2l.reports.html import render, write_html, write_sweep
from s2l.reports.inert import inert_json
from s2l.reports.life import Life, typical
from s2l.reports.page import RunView
from s2l.reports.pairs import Pairs
from s2l.reports.provenance import sentence
from s2l.reports.sweep import sweep_runs
from s2l.reports.timeline_chart import merged

MakeRun = Callable[..., Run]

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=alert(1)><!-- & \u2028"


class Elements(HTMLParser):
    """Every start tag with its attributes, and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.texts.append((tag, dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            tag, attrs, text = self.texts.pop()
            self.texts.append((tag, attrs, text + data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture
def page(tmp_path: Path) -> Callable[..., str]:
    def write(runs: Any) -> str:
        write_html(runs, tmp_path / "report.html")
        return (tmp_path / "report.html").read_text()

    return write


def _hostile(synthetic: ModuleType, make_run: MakeRun) -> Run:
    rows = [
        synthetic.request(query_id=HOSTILE, output_text=HOSTILE),
        synthetic.request(query_id=HOSTILE, request_id="w", delivery="wait"),
    ]
    return make_run(*rows, queries=[(HOSTILE, HOSTILE, [HOSTILE])])


def test_policy_allows_exactly_what_the_page_holds(realistic: Run, page) -> None:
    found = Elements(page(realistic))
    policy = next(m["content"] for m in found.all("meta") if "http-equiv" in m) or ""
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag, attrs, text in found.texts:
        if "type" not in attrs:
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy, tag
    assert not [attrs for _, attrs in found.tags if "style" in attrs or "src" in attrs]


def test_text_stays_text(synthetic: ModuleType, make_run: MakeRun, page) -> None:
    found = Elements(page(_hostile(synthetic, make_run)))
    assert found.all("img") == []
    scripts = found.all("script")
    data = [json.loads(text) for _, attrs, text in found.texts if attrs.get("type")]
    assert [attrs.get("type") for attrs in scripts[-2:]] == [None, None]
    assert len(scripts) == len(data) + 2
    assert all("layer" in one or one["query_id"] == [HOSTILE] * 2 for one in data)


def test_json_is_inert() -> None:
    text = inert_json({"a": HOSTILE})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": HOSTILE}


def test_sections_in_order(realistic: Run, page) -> None:
    text = page(realistic)
    assert re.findall(r"<h2>(.*?)</h2>", text.split("<script>")[0]) == [
        "Time to first token",
        "Gain by query",
        "Latency percentiles",
        "Tokens and throughput",
        "Answer quality",
        "Queries",
        "The life of one query",
        "Requests over time",
        "Workload",
        "Failures",
        "How it was run",
    ]
    assert text.index("Degraded run.") < text.index("5.2x sooner") < text.index("<h2>")
    command = "s2l replay traces/crawl-20251129 --qps 0.1 --seed 7"
    assert command in re.sub(r"</?span[^>]*>", "", text)


@pytest.mark.parametrize("sides", [("stream", "wait"), ("wait",), ()])
def test_a_run_without_success_has_a_report(
    sides: tuple[str, ...], synthetic: ModuleType, make_run: MakeRun, page
) -> None:
    rows = [synthetic.failed("refused", request_id=s, delivery=s, end_us=None) for s in sides]
    text = page(make_run(*rows))
    assert "No request produced a token." in text
    assert ("no answer: refused" in text) == bool(sides)


def test_several_runs_share_one_bundle(realistic: Run, page) -> None:
    one, two = page(realistic), page([realistic, realistic])
    assert two.count("<article") == 2
    assert len(two) < len(one) + 300_000


def test_large_runs_are_thinned_and_say_so(synthetic: ModuleType, tmp_path: Path, page) -> None:
    run = Run.open(synthetic.realistic(tmp_path / "large", 500))
    view = RunView.of(run)
    shown = view.queries.rows
    assert view.queries.total == 500
    assert 100 < len(shown) <= 151
    assert [row.query_id for row in shown if row.gain_value is None] == ["q8"]
    assert "at most 400 points" in view.figures.ttft[0].remarks[-1]
    assert (view.rows.shown, view.rows.total) == (1000, 1000)
    gains = np.sort(Pairs.of(run.requests()).gains())
    kept = np.sort([row.gain_value for row in shown if row.gain_value is not None])
    np.testing.assert_allclose(kept[:20], gains[:20])
    np.testing.assert_allclose(kept[-20:], gains[-20:])
    assert f"{len(shown)} of 500 queries" in page(run)


def test_ccdf_steps() -> None:
    found = ttft_ccdf({"stream": np.array([0.2, 0.1, np.nan, 0.0]), "wait": np.array([])})
    assert found is not None
    values = found.spec["layer"][0].get("data", found.spec.get("data"))
    rows = values.get("values") or found.spec["datasets"][values["name"]]
    assert [(row["value"], row["share"]) for row in rows] == [(100.0, 1.0), (200.0, 0.5)]
    assert "1 time of zero or less has no place on a log axis." in found.remarks


def test_ccdf_keeps_the_extremes() -> None:
    times = np.random.default_rng(0).lognormal(0, 1, 50_000)
    found = ttft_ccdf({"stream": times})
    assert found is not None
    text = json.dumps(found.spec)
    assert f"{times.max():.6g}" in text
    assert f"{times.min() * 1:.6g}" in text
    assert text.count('"share"') < POINT_LIMIT + 20


def test_typical_query_is_nearest_the_median(realistic: Run) -> None:
    requests = realistic.requests()
    rows = typical(requests, Pairs.of(requests))
    stream, wait = (Life.of(row, realistic.chunks()) for row in rows)
    assert (stream.delivery, wait.delivery) == ("stream", "wait")
    assert stream.query_id == wait.query_id
    assert stream.arrivals_s == wait.arrivals_s
    assert len(stream.chunks) == 7
    assert stream.due_s == stream.arrivals_s[-1]


def test_spans_that_touch_are_one() -> None:
    spans = [(3.0, 4.0), (0.0, 1.0), (1.0, 2.0), (5.0, None), (None, None), (3.2, 3.5)]
    assert merged(spans) == [(0.0, 2.0), (3.0, 4.0)]


def test_ten_thousand_requests_fit_into_two_megabytes(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    run = Run.open(synthetic.complete(tmp_path / "run", 1_250))
    view = RunView.of(run)
    assert view.rows.total == 10_000
    assert len(render([view]).encode()) < 2_000_000
    kept = [value for value in view.rows.columns["ttft_s"] if value is not None]
    requests = run.requests()
    fine = requests.filter(requests["error_type"].is_null())
    whole = np.asarray(fine["first_token_us"].to_numpy() - fine["context_intended_us"].to_numpy())
    assert (min(kept), max(kept)) == (whole.min() / 1e6, whole.max() / 1e6)
    assert view.rows.shown <= 2_000


def test_a_complete_run_has_every_section(synthetic: ModuleType, tmp_path: Path, page) -> None:
    text = page(Run.open(synthetic.complete(tmp_path / "run"))).split("window.vegaEmbed")[0]
    for heading in (
        "Goodput",
        "What waiting for more context buys",
        "The server during the run",
        "KV cache in use",
        "Event-loop lag",
        "Prefill hidden",
        "Gaps between content events",
        "Delivery stream",
        "To have it again",
    ):
        assert f">{heading}</h" in text, heading
    assert "send lag p99 0.41 ms, TTFT error p50 0.12 ms, TTFT error p99 0.37 ms" in text
    assert "Attempts that failed and were repeated: 16 connect." in text
    assert "Objectives: ttft_s&lt;500ms, tpot_s&lt;50ms." in text
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))


def test_a_sweep_links_its_runs(synthetic: ModuleType, tmp_path: Path) -> None:
    path = synthetic.sweep(tmp_path / "sweep")
    runs = sweep_runs(path)
    write_sweep(runs, path / "report.html", [run.path / "report.html" for run in runs])
    text = (path / "report.html").read_text()
    links = re.findall(r'<a href="(.*?)">', text.split("window.vegaEmbed")[0])
    assert links == [f"rate-{rate:g}/report.html" for rate in synthetic.SWEEP_RATES]
    assert all((path / link).is_file() for link in links)
    assert re.findall(r' id="(all-[^"]+)"', text) == [
        "all-sweep-ttft",
        "all-sweep-rate",
        "all-sweep-tokens",
        "all-sweep-gain",
    ]
    assert "By offered rate" in text


def test_several_runs_with_rates_begin_with_them(
    synthetic: ModuleType, tmp_path: Path, page
) -> None:
    runs = sweep_runs(synthetic.sweep(tmp_path / "sweep"))
    text = page(runs[:2])
    assert text.index("By offered rate") < text.index("<article")
    assert text.count("<article") == 2


def test_sums_of_floats_are_not_shown_to_the_last_digit() -> None:
    assert (
        sentence({"rate_qps": 0.15 * 3, "whole": 2.0, "n": 7}) == "rate_qps: 0.45; whole: 2; n: 7"
    )


def test_settings_are_written_with_six_digits_and_without_the_empty_ones() -> None:
    found = sentence(
        {"e2e_s": [0.510459871, 0.5], "at": 1764458843.25, "answer_at": [], "name": ""}
    )
    assert found == "e2e_s: 0.51046, 0.5; at: 1764458843"
    assert sentence({"answer_at": []}) == "not stated"
