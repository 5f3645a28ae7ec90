"""Which points a sweep has, and when it ends."""

import json
from pathlib import Path

import click
import pytest

from s2l.reports.slo import parse_slos
from s2l.sweeping.plan import SweepPlan
from s2l.sweeping.rate_search import RateSearch
from s2l.sweeping.record import (
    SWEEP_FORMAT,
    Sweep,
    SweepPoint,
    read_sweep,
    run_folder,
    write_sweep,
)

BOTH = ("stream", "wait")


def point(rate: float, *, saturated: tuple[str, ...] = (), **meets: bool) -> SweepPoint:
    return SweepPoint(
        rate_qps=rate,
        run=f"qps-{rate:g}",
        verdict="valid",
        meets=meets,
        saturated=list(saturated),
    )


def test_a_list_is_replayed_in_its_order() -> None:
    plan = SweepPlan(BOTH, rates=(1, 2, 4))
    assert plan.next_rate([]) == 1
    assert plan.next_rate([point(1), point(4)]) == 2
    assert plan.next_rate([point(1), point(2), point(4)]) is None
    assert plan.ended([point(1), point(2), point(4)]) == "all rates were replayed"


def test_a_list_ends_when_every_delivery_is_saturated() -> None:
    plan = SweepPlan(BOTH, rates=(1, 2, 4, 8))
    half = [point(1), point(2, saturated=("wait",))]
    assert plan.next_rate(half) == 4
    assert plan.ended(half) == ""
    whole = [*half, point(4, saturated=("wait", "stream"))]
    assert plan.next_rate(whole) is None
    assert plan.ended(whole) == "saturated at 4 requests/s; 1 higher rates were left out"


def test_a_search_is_over_when_it_is_for_every_delivery() -> None:
    """Streaming manages 10 requests a second and waiting 3; points are shared."""
    plan = SweepPlan(BOTH, parse_slos("ttft_s:p95<1s"), search=RateSearch(1, 0.5))
    points: list[SweepPoint] = []
    while (rate := plan.next_rate(points)) is not None:
        points.append(point(rate, stream=rate <= 10, wait=rate <= 3))
    assert [p.rate_qps for p in points] == [1, 2, 4, 8, 16, 11.3, 2.83]
    assert plan.highest_qps(points) == {"stream": 8, "wait": 2.83}
    assert plan.ended(points) == "the search has closed in"


def test_points_are_long_enough() -> None:
    plan = SweepPlan(BOTH, rates=(1,), min_requests=20, min_seconds=30)
    assert [plan.requests(rate) for rate in (0.1, 0.5, 2, 20)] == [20, 20, 60, 600]
    strict = SweepPlan(BOTH, parse_slos("ttft_s:p99<1s,tpot_s:p50<1s"), (1,), min_requests=20)
    assert strict.requests(1) == 200


def test_without_objectives_no_rate_is_the_highest() -> None:
    assert SweepPlan(BOTH, rates=(1,)).highest_qps([point(1)]) == {}


def test_the_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    sweep = Sweep(
        format=SWEEP_FORMAT,
        created_utc="2026-01-01T00:00:00+00:00",
        command=["s2l", "sweep"],
        trace="traces/x",
        options={"seed": 3, "target": None},
        slo="ttft_s:p95<500ms",
        points=[point(1, stream=True, wait=False)],
        highest_qps={"stream": 1, "wait": None},
    )
    write_sweep(tmp_path / "sweep", sweep)
    assert read_sweep(tmp_path / "sweep") == sweep
    written = json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    assert written["points"][0]["run"] == "qps-1"


def test_an_interrupted_point_is_left_as_it_is(tmp_path: Path) -> None:
    assert run_folder(tmp_path, 2.5).name == "qps-2.5"
    (tmp_path / "qps-2.5").mkdir()
    assert run_folder(tmp_path, 2.5).name == "qps-2.5-2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no sweep is in it"),
        ("{", "damaged"),
        ("[]", "format None; this version reads s2l-sweep/1"),
        ('{"format": "s2l-sweep/2"}', "format 's2l-sweep/2'"),
        ('{"format": "s2l-sweep/1"}', "damaged: Object missing required field"),
    ],
)
def test_what_is_no_sweep(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(click.UsageError) as caught:
        read_sweep(tmp_path)
    assert message in str(caught.value)
