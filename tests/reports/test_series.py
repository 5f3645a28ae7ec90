import numpy as np
import pytest

from s2l.reports.series import BINS, Series, largest_per_bin, per_second
from s2l.reports.time_chart import time_chart


def test_few_values_stay_as_they_are_in_order() -> None:
    found = largest_per_bin(np.array([2.0, 1.0, 3.0, np.nan]), np.array([5.0, 6.0, np.nan, 1.0]))
    np.testing.assert_array_equal(found.time_s, [1.0, 2.0])
    np.testing.assert_array_equal(found.values, [6.0, 5.0])


def test_no_peak_is_lost() -> None:
    random = np.random.default_rng(0)
    times, values = random.uniform(0, 100, 50_000), random.gamma(2, 1, 50_000)
    found = largest_per_bin(times, values)
    assert found.values.size == BINS
    assert found.values.max() == values.max()
    assert found.time_s[found.values.argmax()] == times[values.argmax()]
    np.testing.assert_array_equal(found.time_s, np.sort(found.time_s))
    for n in (0, 17, BINS - 1):
        width = (times.max() - times.min()) / BINS
        low = times.min() + n * width
        inside = values[(times >= low) & (times < low + width)]
        assert found.values[n] == inside.max()


def test_values_at_one_moment_have_one_bin() -> None:
    found = largest_per_bin(np.full(500, 4.0), np.arange(500.0))
    assert (found.time_s.tolist(), found.values.tolist()) == ([4.0], [499.0])


def test_rates_count_every_event() -> None:
    times = np.random.default_rng(1).uniform(0, 60, 3_000)
    found = per_second(np.r_[times, np.nan], 60.0)
    widths = np.diff(found.time_s)
    assert (found.values[:-1] * widths).sum() == pytest.approx(3_000)
    assert widths.min() >= 1 - 1e-9
    assert found.values[-1] == found.values[-2]


def test_few_events_have_wide_spans() -> None:
    assert per_second(np.arange(12.0) * 10, 120.0).values.size == 10 + 1
    assert per_second(np.array([0.2, 0.4]), 0.5).values.tolist() == [4.0, 4.0]
    assert per_second(np.array([np.nan]), 10.0).values.size == 0
    assert per_second(np.array([0.0]), 0.0).values.size == 0


def test_a_chart_over_time_needs_two_moments() -> None:
    one = Series(np.array([1.0]), np.array([2.0]))
    assert time_chart({"stream": one, "wait": one}, "Lag, ms") is None
    assert time_chart({}, "Lag, ms") is None
    assert time_chart({"stream": Series(np.arange(2.0), np.zeros(2))}, "Lag, ms") is not None
