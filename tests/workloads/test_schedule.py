"""A schedule ends by a count, by a duration, or by itself."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from s2l.workloads.arrivals import schedule
from s2l.workloads.arrivals.schedule import schedule_us

TRACE = (0, 5_000_000, 6_000_000, 20_000_000)


def starts(arrivals: str, recorded: Sequence[int] = TRACE, **others: Any) -> list[int]:
    asked = {"rate_qps": None, "seed": 7, "recorded_us": recorded} | others
    found: list[int] = schedule_us(arrivals, **asked).tolist()
    return found


def test_the_whole_trace_by_default() -> None:
    assert len(starts("poisson", rate_qps=2.0)) == 4
    assert starts("recorded") == list(TRACE)


def test_a_count() -> None:
    assert starts("constant", rate_qps=2.0, n=6) == [500_000 * k for k in range(6)]
    assert starts("recorded", n=6) == [*TRACE, 26_666_667, 31_666_667]


def test_a_duration() -> None:
    assert starts("constant", rate_qps=2.0, duration_s=2) == [0, 500_000, 1_000_000, 1_500_000]
    assert starts("recorded", duration_s=20) == [0, 5_000_000, 6_000_000]
    assert starts("recorded", duration_s=27) == [*TRACE, 26_666_667]
    # The whole trace is stretched to 0.3 s: its mean rate is the one asked for.
    stretched = starts("recorded", rate_qps=10.0, duration_s=0.45)
    assert stretched == [0, 75_000, 90_000, 300_000, 400_000]


def test_a_duration_needs_no_second_schedule() -> None:
    long = starts("poisson", rate_qps=100.0, duration_s=60)
    assert starts("poisson", rate_qps=100.0, n=len(long)) == long
    assert 5_600 < len(long) < 6_400


def test_a_file_of_delays_is_stretched_as_a_whole_whatever_the_trace(tmp_path: Path) -> None:
    """Its first 4,500 starts take a tenth of the time that the last 500 take."""
    file = tmp_path / "delays.txt"
    file.write_text("\n".join(["0.1"] * 4_500 + ["9"] * 500))
    short = starts(f"file:{file}", rate_qps=10.0, duration_s=50)
    assert starts(f"file:{file}", range(0, 5_000_000, 1_000), rate_qps=10.0, duration_s=50) == short
    whole = starts(f"file:{file}", rate_qps=10.0, n=5_000)
    assert short == [start for start in whole if start < 50_000_000]


def test_as_many_starts_as_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "MOST_STARTS", 2_500)
    assert len(starts("constant", rate_qps=1_000.0, duration_s=2.4)) == 2_400
    assert len(starts("constant", rate_qps=1_000.0, duration_s=2.5)) == 2_500
    with pytest.raises(ValueError, match="more than 2,500 starts"):
        starts("constant", rate_qps=1_000.0, duration_s=2.501)
    with pytest.raises(ValueError, match="more than 2,500 starts"):
        starts("constant", rate_qps=1_000.0, n=2_501)


def test_both_whichever_comes_first() -> None:
    assert starts("constant", rate_qps=2.0, n=3, duration_s=10) == [0, 500_000, 1_000_000]
    assert starts("constant", rate_qps=2.0, n=300, duration_s=1) == [0, 500_000]


def test_a_profile_ends_by_itself() -> None:
    even = math.inf
    assert len(starts("step:5x2s,10x2s", burstiness=even)) == 30
    assert len(starts("step:5x2s,10x2s", burstiness=even, n=7)) == 7
    assert len(starts("step:5x2s,10x2s", burstiness=even, duration_s=5)) == 40
    assert len(starts("ramp:10..0/2s", burstiness=even)) == 10
    assert starts("ramp:10..0/2s", burstiness=even, duration_s=99)[-1] < 2_000_000


def test_what_has_no_answer() -> None:
    with pytest.raises(ValueError, match="12 starts asked for, but the rate falls to 0 after 10"):
        starts("ramp:10..0/2s", burstiness=math.inf, n=12)
    with pytest.raises(ValueError, match="duration_s is 0; it must be above 0"):
        starts("constant", rate_qps=1.0, duration_s=0)
    with pytest.raises(ValueError, match="need a rate"):
        starts("poisson")
