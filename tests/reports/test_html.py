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
from s2l.reports.html import write_html
from s2l.reports.life import typical
from s2l.reports.page import RunView, inert_json
from s2l.reports.pairs import Pairs
from s2l.reports.timeline_chart import merged
from s2l.reports.ttft_chart import POINT_LIMIT, ttft_ccdf

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
    assert [attrs.get("type") for attrs in scripts] == ["application/json"] * 2 + [None] * 2
    specs = [json.loads(text) for _, attrs, text in found.texts if attrs.get("type")]
    assert all("layer" in spec for spec in specs)


def test_json_is_inert() -> None:
    text = inert_json({"a": HOSTILE})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": HOSTILE}


def test_sections_in_order(realistic: Run, page) -> None:
    text = page(realistic)
    assert re.findall(r"<h2>(.*?)</h2>", text.split("<script>")[0]) == [
        "Time to first token",
        "Latency percentiles",
        "Tokens and throughput",
        "Answer quality",
        "Queries",
        "The life of one query",
        "Failures",
        "How it was run",
    ]
    assert text.index("Degraded run.") < text.index("5.2x sooner") < text.index("<h2>")
    assert "s2l replay traces/crawl-20251129 --qps 0.1 --seed 7" in text


@pytest.mark.parametrize("sides", [("stream", "wait"), ("wait",), ()])
def test_a_run_without_success_has_a_report(
    sides: tuple[str, ...], synthetic: ModuleType, make_run: MakeRun, page
) -> None:
    rows = [synthetic.failed("refused", request_id=s, delivery=s, end_us=None) for s in sides]
    text = page(make_run(*rows))
    assert "No request produced a token." in text
    assert text.count("refused") == (0 if not sides else 1 + 3 * len(sides))


def test_several_runs_share_one_bundle(realistic: Run, page) -> None:
    one, two = page(realistic), page([realistic, realistic])
    assert two.count("<article") == 2
    assert len(two) < len(one) + 200_000


def test_large_runs_are_thinned_and_say_so(synthetic: ModuleType, tmp_path: Path, page) -> None:
    run = Run.open(synthetic.realistic(tmp_path / "large", 500))
    view = RunView.of(run)
    shown = view.queries.rows
    assert view.queries.total == 500
    assert 100 < len(shown) <= 151
    assert [row.query_id for row in shown if row.gain_value is None] == ["q8"]
    assert view.ccdf is not None
    assert "at most 400 points" in view.ccdf.remarks[-1]
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
    assert [(row["ttft"], row["share"]) for row in rows] == [(100.0, 1.0), (200.0, 0.5)]
    assert "1 time of zero or less has no place on a log axis." in found.remarks


def test_ccdf_keeps_the_extremes() -> None:
    times = np.random.default_rng(0).lognormal(0, 1, 50_000)
    found = ttft_ccdf({"stream": times})
    assert found is not None
    text = json.dumps(found.spec)
    assert str(float(times.max())) in text
    assert str(float(times.min())) in text
    assert text.count('"share"') < POINT_LIMIT + 20


def test_typical_query_is_nearest_the_median(realistic: Run) -> None:
    stream, wait = typical(realistic.requests(), realistic.chunks())
    assert (stream.delivery, wait.delivery) == ("stream", "wait")
    assert stream.query_id == wait.query_id
    assert stream.arrivals_s == wait.arrivals_s
    assert len(stream.chunks) == 7
    assert stream.due_s == stream.arrivals_s[-1]


def test_spans_that_touch_are_one() -> None:
    spans = [(3.0, 4.0), (0.0, 1.0), (1.0, 2.0), (5.0, None), (None, None), (3.2, 3.5)]
    assert merged(spans) == [(0.0, 2.0), (3.0, 4.0)]
