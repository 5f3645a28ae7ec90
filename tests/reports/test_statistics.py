import numpy as np
import pytest

from s2l.reports.bootstrap import median_interval
from s2l.reports.percentiles import LEVELS, Distribution, percentile, samples_needed
from s2l.reports.thinning import thinned


@pytest.mark.parametrize(
    ("name", "needed"), [("p50", 2), ("p90", 10), ("p95", 20), ("p99", 100), ("p999", 1000)]
)
def test_percentiles_need_samples(name: str, needed: int) -> None:
    level = LEVELS[name]
    assert samples_needed(level) == needed
    assert percentile(np.arange(needed - 1.0), level) is None
    assert percentile(np.arange(float(needed)), level) == np.percentile(np.arange(needed), level)


def test_distribution_leaves_unknown_values_out() -> None:
    found = Distribution.of(np.array([3.0, np.nan, 1.0]))
    assert found == Distribution(2, 2.0, 1.0, 2.0, None, None, None, None, 3.0)


def test_distribution_of_nothing() -> None:
    assert Distribution.of(np.array([np.nan])) == Distribution(0, *[None] * 8)


def test_interval_is_the_same_for_the_same_seed() -> None:
    values = np.random.default_rng(1).lognormal(1.6, 0.3, 500)
    assert median_interval(values, 7) == median_interval(values[::-1], 7)
    assert median_interval(values, 7) != median_interval(values, 8)


@pytest.mark.parametrize("n", [6, 11, 12, 101])
def test_interval_is_that_of_drawn_resamples(n: int) -> None:
    random = np.random.default_rng(3)
    values = random.lognormal(1.6, 0.3, n)
    resamples = random.choice(values, (40_000, n))
    expected = np.quantile(np.median(resamples, axis=1), [0.025, 0.975])
    found = median_interval(values, 0)
    assert found is not None
    np.testing.assert_allclose([found.low, found.high], expected, rtol=0.03)


def test_interval_of_equal_values() -> None:
    found = median_interval(np.full(8, 2.0), 0)
    assert found is not None
    assert (found.low, found.high) == (2.0, 2.0)


def test_too_few_values_have_no_interval() -> None:
    assert median_interval(np.arange(5.0), 0) is None


def test_a_million_values_take_no_resampled_memory() -> None:
    found = median_interval(np.arange(1_000_001.0), 0)
    assert found is not None
    assert found.low < 500_000 < found.high


def test_thinning_keeps_the_extremes() -> None:
    kept = thinned(1_000_000, 400)
    assert kept.size <= 400
    assert set(range(20)) <= set(kept)
    assert set(range(999_980, 1_000_000)) <= set(kept)
    np.testing.assert_array_equal(thinned(400, 400), np.arange(400))
