from collections.abc import Callable
from types import ModuleType

import pytest

from s2l.replayer.run import Run
from s2l.reports.percentile_tables import LATENCIES, latency_groups
from s2l.reports.summary import summarize
from s2l.reports.tables import parity_text

MakeRun = Callable[..., Run]


def titles(make_run: MakeRun, synthetic: ModuleType, late_us: int, due_s: int = 1) -> list[str]:
    """Of the latencies of four requests that were started so late."""
    rows = []
    for n in range(4):
        row = synthetic.timed(f"q{n}", "stream", n * 10**6, 0.2)
        row["start_us"] = row["start_intended_us"] + late_us
        row["context_us"] = row["context_intended_us"] + late_us
        row["context_intended_us"] -= (due_s - 1) * 10**6
        rows.append(row)
    return [group.title for group in latency_groups(summarize(make_run(*rows)), LATENCIES)]


ALWAYS = ["TTFT", "TTFT, service", "TTFT, user", "TPOT", "ITL", "End to end", "End to end, user"]


@pytest.mark.parametrize("late_us", [0, 900], ids=["in time", "by less than 1 ms"])
def test_a_client_in_time_has_no_latencies_from_actual_times(
    make_run: MakeRun, synthetic: ModuleType, late_us: int
) -> None:
    assert titles(make_run, synthetic, late_us) == ALWAYS


def test_those_of_a_late_client_stand_beside_the_intended(
    make_run: MakeRun, synthetic: ModuleType
) -> None:
    assert titles(make_run, synthetic, 20_000) == [
        *("TTFT", "TTFT, service", "TTFT, user", "TTFT, user, actual", "TPOT", "ITL"),
        *("End to end", "End to end, actual", "End to end, user", "End to end, user, actual"),
    ]


def test_actual_latencies_count_from_what_was_done(
    make_run: MakeRun, synthetic: ModuleType
) -> None:
    row = synthetic.timed("q0", "stream", 0, 0.2) | {"start_us": 30_000, "context_us": 1_050_000}
    found = summarize(make_run(row)).deliveries[0].latencies
    assert found.ttft_user_actual_s.min == pytest.approx(1.2 - 0.03)
    assert found.e2e_service_s.min == pytest.approx(1.24 - 1.05)
    assert found.e2e_user_actual_s.min == pytest.approx(1.24 - 0.03)


def test_parity_of_one_pair(make_run: MakeRun, synthetic: ModuleType) -> None:
    rows = [synthetic.timed("q0", name, 0, 0.2) for name in ("stream", "wait")]
    said = parity_text(summarize(make_run(*rows)))
    assert said == "Parity: 100 %: 1 of 1 pair has identical texts."
