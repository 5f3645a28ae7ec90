"""Runs that asked early: which of their requests the figures are of, everywhere the same."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from s2l.replayer.run import Run, RunError
from s2l.reports.comparison.compare import compare
from s2l.reports.comparison.side import Side
from s2l.reports.comparison.ttft_overlay import overlays
from s2l.reports.export_formats import export_table
from s2l.reports.headline import headline
from s2l.reports.html import Overview, write_html, write_sweep
from s2l.reports.moments import early_moment, final_rows, moments
from s2l.reports.page import RunView
from s2l.reports.paper_figures import ttft_ccdf
from s2l.reports.passes import pass_starts_us
from s2l.reports.run_data import RunData
from s2l.reports.site.build import build_site
from s2l.reports.site.entries import run_entry
from s2l.reports.summary import Summary, summarize, summary_json
from s2l.reports.terminal import print_summary

SAID = "Of queries asked at 50% of the retrieval, the latest moment of this run"
Make = Callable[..., Run]


@pytest.fixture
def early(synthetic: ModuleType, tmp_path: Path) -> Make:
    """A run whose questions were asked at the moments named, under the name given first."""

    def make(name: str, *at: str | None, **changes: Any) -> Run:
        return Run.open(synthetic.asked_early(tmp_path / "runs" / name, *at, **changes))

    return make


def figures(summary: Summary) -> list[tuple[Any, ...]]:
    return [
        (one.delivery, one.outcomes.planned, one.latencies.ttft_s.p50, one.throughput.completion_s)
        for one in summary.deliveries
    ]


def test_the_latest_moment_is_final_where_none_waited(early: Make) -> None:
    summary = summarize(early("run", "25%", "50%"))
    # Eight queries a second apart, asked 1 s after their start, with 0.02 s to the last token.
    assert figures(summary) == [
        ("stream", 8, pytest.approx(0.1), pytest.approx(8.12)),
        ("wait", 8, pytest.approx(0.3), pytest.approx(8.32)),
    ]
    assert summary.gain is not None
    assert (summary.gain.pairs, summary.gain.median) == (8, pytest.approx(3.0))
    assert summary.deliveries[0].throughput.request_rate == pytest.approx(8 / 8.12)
    assert summary.deliveries[0].quality.exact_match == 1.0
    assert summary.asked_at == "50%"
    assert json.loads(summary_json(summary))["asked_at"] == "50%"
    assert [point.answer_at for point in summary.curve] == ["25%", "50%", "25%", "50%"]


def test_the_retrievals_end_is_final_where_any_was_asked_then(early: Make) -> None:
    summary = summarize(early("run", None, "25%"))
    assert figures(summary)[1] == ("wait", 8, pytest.approx(0.2), pytest.approx(9.22))
    assert summary.asked_at is None
    assert not headline(summary).remarks


def test_phases_are_of_one_pass(early: Make) -> None:
    run = early("run", "25%", "50%", schedule={"arrivals": "step:1x4s,2x4s"})
    phases = summarize(run).phases
    assert [side.outcomes.planned for one in phases for side in one.deliveries] == [4, 4, 4, 4]


def test_it_is_said_wherever_a_figure_stands(early: Make, tmp_path: Path) -> None:
    run = early("run", "25%", "50%")
    console = Console(file=(text := io.StringIO()), width=200)
    print_summary(summarize(run), console)
    assert SAID in text.getvalue()
    write_html(run, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert SAID in page
    assert "All other figures of this report are of those asked at the latest." in page
    write_sweep([run, run], tmp_path / "sweep.html", [tmp_path / "a.html", tmp_path / "b.html"])
    assert SAID in (tmp_path / "sweep.html").read_text()
    export_table(run, "markdown", tmp_path / "run.md")
    assert f"3.0x sooner (95 % interval 3.0 to 3.0), at the median of 8 paired queries. {SAID}" in (
        tmp_path / "run.md"
    ).read_text().replace("\\", "")


def test_failures_of_all_moments_are_called_that(synthetic: ModuleType, tmp_path: Path) -> None:
    run = Run.open(synthetic.complete(tmp_path / "run"))
    view = RunView.of(run)
    assert (
        view.left_out()
        == "Failed, and in no percentile: stream: 0; wait: 1 server_error, 1 timeout."
    )
    assert view.failures is not None
    assert view.failures.caption == "Requests by type of failure, at all moments of asking"
    assert [row[:3] for row in view.failures.rows] == [
        ("server_error", "0", "4"),
        ("timeout", "0", "4"),
    ]


def test_charts_over_time_count_from_the_final_passes(early: Make) -> None:
    data = RunData.read(early("run", "25%", "50%")).of_final()
    starts = pass_starts_us(data.info, data.requests, data.moment)
    assert starts == {"stream": 200_000_000, "wait": 300_000_000}


def test_one_early_moment_is_named_too(early: Make) -> None:
    summary = summarize(early("run", "50%"))
    assert (summary.asked_at, summary.curve) == ("50%", ())
    assert headline(summary).remarks[0].startswith(SAID)


@pytest.mark.parametrize("at", [("25%", "50%"), ("25%", None)])
def test_the_sites_index_says_what_the_report_says(early: Make, at: tuple[str | None, ...]) -> None:
    run = early("run", *at)
    entry, summary = run_entry(run), summarize(run)
    assert summary.gain is not None
    assert summary.gain.interval is not None
    interval = summary.gain.interval
    assert (entry.gain, entry.gain_interval) == (summary.gain.median, (interval.low, interval.high))
    assert entry.asked_at == summary.asked_at
    assert [(one.delivery, one.planned, one.ttft_p50_s) for one in entry.deliveries] == [
        (one.delivery, one.outcomes.planned, one.latencies.ttft_s.p50) for one in summary.deliveries
    ]
    # Of the answers before the final moment none is right.
    assert entry.exact_match == summary.deliveries[0].quality.exact_match == 1.0


def test_the_site_says_when_they_were_asked(early: Make, tmp_path: Path) -> None:
    build_site([early("run", "25%", "50%")], tmp_path / "site")
    for name in ("index.html", "feed.xml"):
        assert "asked at 50% of the retrieval" in (tmp_path / "site" / name).read_text()


def test_gains_of_the_latest_moment_are_compared(early: Make) -> None:
    found = compare(early("a", "25%", "50%"), early("b", "25%", "50%"))
    [across] = [one for one in found.conditions if one.condition.delivery == "stream and wait"]
    gain = across.change("streaming_gain", "p50")
    assert gain is not None
    assert (gain.n, gain.base) == (8, pytest.approx(3.0))
    assert across.condition.answer_at == "50%"


def test_the_end_has_two_names(early: Make) -> None:
    found = compare(early("a", None), early("b", "100%"))
    assert [str(one.condition) for one in found.conditions] == ["stream", "wait", "stream and wait"]


def test_papers_and_overlays_draw_one_moment(early: Make) -> None:
    runs = [early("a", "25%", "50%"), early("b", "25%", "50%")]
    spec = json.dumps(ttft_ccdf(runs))
    assert spec.count('"delivery": "stream"') == spec.count('"delivery": "wait"') == 16
    named = [(run.path.name, Side.of(run).requests) for run in runs]
    assert [one.delivery for one in overlays(named)] == ["stream", "wait"]
    drawn = json.dumps(overlays(named)[0].spec)
    assert drawn.count('"run": "a"') == drawn.count('"run": "b"') == 8
    assert drawn.count('"text": "100 ms"') == 16
    other = early("c", None)
    with pytest.raises(RunError, match=r"at 50% of the retrieval and at 100% of the retrieval"):
        ttft_ccdf([*runs, other])
    assert overlays([*named, ("c", Side.of(other).requests)]) == []


def test_rates_of_two_moments_are_not_joined_by_a_line(early: Make) -> None:
    runs = [
        early(name, at, schedule={"rate_qps": rate})
        for name, at, rate in (("a", "50%", 1.0), ("b", None, 2.0))
    ]
    assert Overview.of([(run.path.name, summarize(run)) for run in runs]) is None


def test_a_moment_that_only_failed_is_final_all_the_same(
    synthetic: ModuleType, make_run: Make
) -> None:
    run = make_run(
        synthetic.request(answer_at="25%"), synthetic.failed("timeout", request_id="stream-1")
    )
    assert summarize(run).deliveries[0].outcomes.succeeded == 0
    with pytest.raises(RunError, match="no request produced a token"):
        ttft_ccdf([run])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["50%", "9%", None, "25%"], ["9%", "25%", "50%", "100%"]),
        (["2s", "500ms", "10s"], ["500ms", "2s", "10s"]),
        (["2s", "50%", "25%", "1s"], ["1s", "25%", "2s", "50%"]),  # of a retrieval of 6 s
        (["0%", "1s"], ["0%", "1s"]),
        (["soon", "50%"], ["soon", "50%"]),
    ],
)
def test_moments_are_in_their_order(
    synthetic: ModuleType, asked: list[str | None], expected: list[str]
) -> None:
    waited = {"25%": 1.5, "50%": 3.0, "9%": 0.54, None: 6.0, "soon": 1.0, "0%": 0.0}
    units = {"500ms": 0.5, "1s": 1.0, "2s": 2.0, "10s": 6.0}
    rows = [
        synthetic.request(
            answer_at=one, context_intended_us=round((waited | units)[one] * 1_000_000)
        )
        for one in asked
    ]
    table = synthetic.request_table(*rows)
    assert list(moments(table)) == expected
    assert early_moment(table) == (None if expected[-1] == "100%" else expected[-1])
    assert final_rows(table)["answer_at"].to_pylist() == [None if None in asked else expected[-1]]


def test_an_interrupted_last_moment_is_the_latest_all_the_same(synthetic: ModuleType) -> None:
    waited_s = (("25%", 0.5), ("25%", 5), ("25%", 5), ("50%", 1))
    rows = [synthetic.request(answer_at=at, context_intended_us=s * 1e6) for at, s in waited_s]
    assert moments(synthetic.request_table(*rows)) == ("25%", "50%")


def test_no_request_at_all(synthetic: ModuleType) -> None:
    table = synthetic.request_table()
    assert (moments(table), early_moment(table), final_rows(table).num_rows) == ((), None, 0)
