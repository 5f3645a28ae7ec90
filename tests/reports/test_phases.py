from collections.abc import Callable
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from s2l.replayer.run import Run
from s2l.reports.html import write_html
from s2l.reports.phase_chart import phase_figures
from s2l.reports.phases import Phase, phases_of
from s2l.reports.point_tables import phase_table
from s2l.reports.site.entries import run_entry
from s2l.reports.slo import parse_slos
from s2l.reports.summary import Summary, summarize
from s2l.reports.terminal import print_summary

MakeRun = Callable[..., Run]

STEPS = "step:1x4s,2x2s"
STARTS_S = (0.0, 1.0, 2.5, 4.0, 5.0, 5.5)
"""Three queries in each step; the border is the second one's."""


def rows(synthetic: ModuleType, **changes: Any) -> list[dict[str, Any]]:
    """Waiting takes 1 s to the first token, streaming 0.5 s in the first step and 0.2 s then."""
    found = []
    for pass_s, delivery in ((100.0, "wait"), (200.0, "stream")):
        for at, start_s in enumerate(STARTS_S):
            ttft_s = 1.0 if delivery == "wait" else 0.5 if start_s < 4 else 0.2
            start_us = round((pass_s + start_s) * 1e6)
            found.append(synthetic.timed(f"q{at}", delivery, start_us, ttft_s) | changes)
    return found


@pytest.fixture
def stepped(make_run: MakeRun, synthetic: ModuleType) -> Run:
    info = synthetic.run_info(schedule={"arrivals": STEPS})
    return make_run(*rows(synthetic), info=info)


def test_a_step_has_the_queries_that_were_to_start_in_it(stepped: Run) -> None:
    found = summarize(stepped, parse_slos("ttft_s<600ms")).phases
    assert [one.phase for one in found] == [Phase(1, 1, 0, 4), Phase(2, 2, 4, 6)]
    assert [one.gain.median for one in found if one.gain] == [2.0, 5.0]
    slow, quick = found[0].deliveries[0], found[1].deliveries[0]
    assert (slow.delivery, slow.outcomes.planned, slow.ttft_s.p50) == ("stream", 3, 0.5)
    assert (quick.outcomes.planned, quick.ttft_s.p50, quick.ttft_s.p90) == (3, 0.2, None)
    assert (slow.started, quick.started) == (0.75, 1.5)
    # The ends: 1.54, 2.54, then 4.04 (of the first step's last query), 5.24, 6.24, 6.74 s.
    assert (slow.completed, quick.completed) == (2 / 4, 2 / 2)
    assert [side.attainment for one in found for side in one.deliveries] == [1, 0, 1, 0]


def test_the_table_has_a_row_for_each_phase_and_delivery(stepped: Run) -> None:
    table = phase_table(summarize(stepped).phases)
    assert table is not None
    assert table.head == (
        *("Offered / s", "Delivery", "TTFT p50, s", "TTFT p95, s", "TTFT p99, s"),
        *("Started / s", "Completed / s", "Succeeded", "Gain", "95 % interval"),
    )
    assert table.rows == (
        ("1", "stream", "0.500", "n/a", "n/a", "0.750", "0.500", "3 of 3", "2.0x", "n/a"),
        ("1", "wait", "1.000", "n/a", "n/a", "0.750", "0.500", "3 of 3", "", ""),
        ("2", "stream", "0.200", "n/a", "n/a", "1.50", "1.00", "3 of 3", "5.0x", "n/a"),
        ("2", "wait", "1.000", "n/a", "n/a", "1.50", "0.500", "3 of 3", "", ""),
    )


def test_the_page_shows_them(stepped: Run, tmp_path: Path) -> None:
    write_html(stepped, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "<h2>By offered rate</h2>" in text
    assert text.count('id="run1-sweep-ttft"') == 1


def test_the_terminal_has_room_for_them(stepped: Run) -> None:
    text = StringIO()
    print_summary(summarize(stepped, parse_slos("ttft_s<600ms")), Console(file=text, width=80))
    lines = text.getvalue().splitlines()
    at = next(n for n, line in enumerate(lines) if "rate/s" in line)
    assert lines[at].split() == [
        *("rate/s", "p50,", "s", "p95,", "s", "p99,", "s", "done/s", "ok"),
        *("attain", "Gain", "95", "%"),
    ]
    assert lines[at + 4].split()[:6] == ["2", "stream", "0.200", "n/a", "n/a", "1.00"]


def test_failures_are_in_no_percentile(make_run: MakeRun, synthetic: ModuleType) -> None:
    several = rows(synthetic)
    several[-1] = synthetic.failed(
        "timeout", query_id="q5", delivery="stream", start_intended_us=205_500_000
    )
    run = make_run(*several, info=synthetic.run_info(schedule={"arrivals": STEPS}))
    last = summarize(run).phases[1]
    assert last.deliveries[0].outcomes.failed == {"timeout": 1}
    assert (last.deliveries[0].ttft_s.n, last.deliveries[1].ttft_s.n) == (2, 3)
    assert last.gain is not None
    assert (last.gain.pairs, last.gain.unpaired) == (2, 1)


def test_a_ramp_is_looked_at_in_parts(synthetic: ModuleType) -> None:
    starts = [0, 1_900_000, 2_000_000, 9_999_999]
    requests = synthetic.request_table(
        *(synthetic.timed(f"q{n}", "stream", start, 0.1) for n, start in enumerate(starts))
    )
    phases, codes = phases_of(synthetic.run_info(schedule={"arrivals": "ramp:1..6/10s"}), requests)
    assert [phase.rates for phase in phases] == ["1 to 2", "2 to 3", "5 to 6"]
    assert [(phase.start_s, phase.end_s) for phase in phases] == [(0, 2), (2, 4), (8, 10)]
    assert [phase.rate_qps for phase in phases] == [1.5, 2.5, 5.5]
    assert codes.tolist() == [0, 0, 1, 2]


def test_rates_that_requests_state_come_first(make_run: MakeRun, synthetic: ModuleType) -> None:
    several = rows(synthetic, rate=4.0) + rows(synthetic, rate=1.0)
    run = make_run(*several, info=synthetic.run_info(schedule={"arrivals": STEPS}))
    found = summarize(run).phases
    assert [one.phase for one in found] == [Phase(1.0, 1.0), Phase(4.0, 4.0)]
    assert [side.outcomes.planned for one in found for side in one.deliveries] == [6] * 4
    assert {side.started for one in found for side in one.deliveries} == {None}


@pytest.mark.parametrize(
    ("options", "starts_s", "ends_s"),
    [
        ({}, (0, 4, 5), 6),
        ({}, (0, 4, 9), 9),
        ({"n_queries": 3}, (0, 4, 5), 5),
        ({"duration_s": 5.5}, (0, 4, 5), 5),
    ],
    ids=["all of the profile", "the last rate goes on", "ended by a count", "by a duration"],
)
def test_the_last_phase_is_as_long_as_it_was(
    synthetic: ModuleType, options: dict[str, Any], starts_s: tuple[int, ...], ends_s: int
) -> None:
    requests = synthetic.request_table(
        *(synthetic.timed(f"q{at}", "wait", at * 10**6, 0.1) for at in starts_s)
    )
    info = synthetic.run_info(schedule={"arrivals": STEPS}, options=options)
    phases, _ = phases_of(info, requests)
    assert [phase.end_s for phase in phases] == [4, ends_s]


@pytest.mark.parametrize("arrivals", ["poisson", "step:4x10s", "step:as another tool has it", ""])
def test_one_rate_has_no_phases(make_run: MakeRun, synthetic: ModuleType, arrivals: str) -> None:
    info = synthetic.run_info(schedule={"arrivals": arrivals})
    found: Summary = summarize(make_run(*rows(synthetic), info=info))
    assert found.phases == ()
    assert phase_table(found.phases) is None
    assert list(phase_figures(found.phases)) == []


def test_a_rate_that_comes_again_has_a_table_and_no_line(
    make_run: MakeRun, synthetic: ModuleType
) -> None:
    info = synthetic.run_info(schedule={"arrivals": "step:1x2s,2x2s,1x2s"})
    found = summarize(make_run(*rows(synthetic), info=info)).phases
    assert [one.phase.rates for one in found] == ["1", "2", "1"]
    assert list(phase_figures(found)) == []


def test_the_site_names_the_rates_of_a_run(stepped: Run) -> None:
    assert run_entry(stepped).rates_qps == [1.0, 2.0]


def test_the_site_names_the_ends_of_a_ramp(make_run: MakeRun, synthetic: ModuleType) -> None:
    info = synthetic.run_info(schedule={"arrivals": "ramp:1..6/6s"})
    assert run_entry(make_run(*rows(synthetic), info=info)).rates_qps == [1.0, 6.0]
