from types import ModuleType

import msgspec
import pyarrow as pa
import pytest

from s2l.replayer.run import PassWindow, RunInfo
from s2l.reports.passes import final_passes, of_final_passes, pass_starts_us


@pytest.fixture
def early(synthetic: ModuleType) -> RunInfo:
    """Asked at a quarter of the retrieval, then at its end."""
    windows = [("wait", "25%", 10, 20), ("stream", "25%", 30, 40), ("wait", None, 50, 60)]
    found = [
        PassWindow(delivery=name, start_us=start, end_us=end, answer_at=at)
        for name, at, start, end in [*windows, ("stream", None, 70, 80)]
    ]
    info: RunInfo = synthetic.run_info(passes=found)
    return info


def test_time_counts_from_the_pass_that_the_figures_are_of(
    early: RunInfo, synthetic: ModuleType
) -> None:
    assert [one.start_us for one in final_passes(early, None)] == [50, 70]
    requests = synthetic.request_table(
        synthetic.timed("q0", "wait", 51, 0.1), synthetic.timed("q0", "stream", 70, 0.1)
    )
    assert pass_starts_us(early, requests, None) == {"wait": 50, "stream": 70}


def test_samples_of_other_passes_are_left_out(early: RunInfo) -> None:
    times = [5, 15, 45, 55, 61, 75, 90]
    names = ["wait", "wait", "wait", "wait", "wait", "stream", "stream"]
    found = of_final_passes(early, pa.table({"delivery": names, "time_us": times}), None)
    assert found["time_us"].to_pylist() == [45, 55, 61, 75, 90]


def test_a_run_that_asked_once_keeps_all_samples(synthetic: ModuleType) -> None:
    samples = pa.table({"delivery": ["stream"], "time_us": [10**12]})
    assert of_final_passes(synthetic.run_info(), samples, None) is samples


def test_asked_early_alone_these_passes_are_the_final_ones(synthetic: ModuleType) -> None:
    only = [PassWindow(delivery="wait", start_us=7, end_us=9, answer_at="2s")]
    assert final_passes(synthetic.run_info(passes=only), "2s") == only


def test_asked_early_alone_the_latest_passes_are_the_final_ones(early: RunInfo) -> None:
    info = msgspec.structs.replace(early, passes=early.passes[:2])
    assert [one.start_us for one in final_passes(info, "25%")] == [10, 30]
    late = PassWindow(delivery="wait", start_us=50, end_us=60, answer_at="50%")
    info = msgspec.structs.replace(info, passes=[*info.passes, late])
    assert [one.start_us for one in final_passes(info, "50%")] == [50]
