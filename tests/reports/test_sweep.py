import io
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from rich.console import Console

from s2l.replayer.run import Run, RunError, Validity
from s2l.reports.comparison.side import Side
from s2l.reports.html import Overview
from s2l.reports.summary import summarize
from s2l.reports.sweep import is_sweep, offered_rate, rate_series, sweep_runs
from s2l.reports.terminal import print_rates


@pytest.fixture
def runs(synthetic: ModuleType, tmp_path: Path) -> list[Run]:
    return sweep_runs(synthetic.sweep(tmp_path / "sweep"))


def test_points_by_rising_rate(runs: list[Run], synthetic: ModuleType) -> None:
    named = [(run.path.name, summarize(run)) for run in reversed(runs)]
    series = rate_series(named)
    assert series.rates == synthetic.SWEEP_RATES
    assert [one.run for one in series.gains] == ["rate-0.5", "rate-1", "rate-2", "rate-4"]
    slowest = [one for one in series.points if one.rate_qps == 4.0]
    assert [one.delivery for one in slowest] == ["stream", "wait"]
    assert slowest[0].attainment is not None
    assert slowest[1].attainment is not None
    assert slowest[0].attainment > slowest[1].attainment
    assert slowest[0].goodput == pytest.approx(
        (slowest[0].completed or 0) * slowest[0].attainment, rel=1e-9
    )


@pytest.mark.parametrize("other", ["trace", "server"])
def test_two_workloads_or_servers_are_not_joined_by_a_line(runs: list[Run], other: str) -> None:
    one, two = (summarize(run) for run in runs[:2])
    if other == "trace":
        info = msgspec.structs.replace(
            two.info, trace=msgspec.structs.replace(two.info.trace, sha256="another")
        )
    else:
        info = msgspec.structs.replace(
            two.info, target=msgspec.structs.replace(two.info.target, server="another")
        )
    named = [("one", one), ("two", replace(two, info=info))]
    assert rate_series(named).points == ()
    assert Overview.of(named) is None
    console = Console(file=(text := io.StringIO()))
    print_rates(named, console)
    assert text.getvalue() == ""


def test_the_overview_draws_and_tabulates(runs: list[Run]) -> None:
    found = Overview.of([(run.path.name, summarize(run)) for run in runs])
    assert found is not None
    assert [figure.key for figure in found.figures] == [
        "sweep-ttft",
        "sweep-rate",
        "sweep-tokens",
        "sweep-gain",
    ]
    assert [row[:3] for row in found.table.rows[:3]] == [
        ("0.5", "stream", "valid"),
        ("0.5", "wait", "valid"),
        ("1", "stream", "valid"),
    ]
    assert found.left_out == ""


def test_rates_have_ticks_and_labels_no_exponents(runs: list[Run], synthetic: ModuleType) -> None:
    found = Overview.of([(run.path.name, summarize(run)) for run in runs])
    assert found is not None
    for figure in found.figures:
        encoding = figure.spec["layer"][0]["encoding"]
        assert encoding["x"]["axis"]["values"] == list(synthetic.SWEEP_RATES)
        assert {encoding[side]["axis"]["format"] for side in "xy"} == {",~r"}


def test_words_of_the_rates_are_whole_at_80_columns(runs: list[Run]) -> None:
    written = io.StringIO()
    degraded = Validity(verdict="degraded")
    named = [(run.path.name, summarize(run)) for run in runs]
    named = [
        (name, replace(one, info=msgspec.structs.replace(one.info, validity=degraded)))
        for name, one in named
    ]
    print_rates(named, Console(file=written, width=80))
    text = written.getvalue()
    assert text.count(" degraded ") == 2 * len(runs)
    assert "attain failed" in text


def test_runs_without_a_rate_are_named(runs: list[Run], synthetic: ModuleType, make_run) -> None:
    info = synthetic.run_info(schedule={"process": "recorded", "rate_qps": None})
    without = summarize(make_run(synthetic.request(), info=info))
    assert offered_rate(without.info) is None
    named = [(run.path.name, summarize(run)) for run in runs[:2]]
    found = Overview.of([*named, ("mine", without)])
    assert found is not None
    assert found.left_out == "Without a rate: mine."
    assert Overview.of([("mine", without), named[0]]) is None


def test_a_point_without_a_run_is_left_out(runs: list[Run], tmp_path: Path) -> None:
    file = tmp_path / "sweep" / "sweep.json"
    points = [{"rate_qps": 1.0, "run": "rate-1"}, {"rate_qps": 9.0, "run": None}]
    file.write_bytes(msgspec.json.encode({"points": points}))
    assert is_sweep(tmp_path / "sweep")
    assert [run.path.name for run in sweep_runs(tmp_path / "sweep")] == ["rate-1"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"points": 3}', '{"points": [3]}'])
def test_a_damaged_sweep_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(RunError, match="cannot be read as a sweep") as raised:
        sweep_runs(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_sweep_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text('{"points": []}')
    with pytest.raises(RunError, match="no point of this sweep has a run"):
        sweep_runs(tmp_path)


@pytest.mark.parametrize(
    "name", ["../private-run", "absolute", "rate-1/../../private-run", ".", "link"]
)
def test_a_sweep_names_no_run_outside_of_its_folder(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = synthetic.sweep(tmp_path / "sweep", n_queries=2)
    private = synthetic.write_run(tmp_path / "private-run", synthetic.request_table())
    (folder / "link").symlink_to(private)
    monkeypatch.chdir(tmp_path)
    named = str(private) if name == "absolute" else name
    (folder / "sweep.json").write_bytes(msgspec.json.encode({"points": [{"run": named}]}))
    with pytest.raises(RunError, match="names a run outside of its folder") as raised:
        sweep_runs(folder)
    assert "\n" not in str(raised.value)


def test_a_run_of_that_name_elsewhere_is_none_of_the_sweeps(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synthetic.write_run(tmp_path / "mine", synthetic.request_table())
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "sweep.json").write_text('{"points": [{"run": "mine"}]}')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match="no such run folder"):
        sweep_runs(tmp_path / "sweep")


@pytest.mark.parametrize(("stated", "expected"), [(2, 2.0), (0, None), (-1.0, None), (None, None)])
def test_a_rate_is_above_zero_for_reports_and_comparisons(
    synthetic: ModuleType, make_run, stated: float | None, expected: float | None
) -> None:
    info = synthetic.run_info(schedule={"rate_qps": stated}, options={})
    run = make_run(synthetic.request(), info=info)
    assert offered_rate(info) == expected
    assert Side.of_sweep(run.path, [run]).requests["rate"].to_pylist() == [expected]
