import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s2l.reports.comparison.resampling import (
    MeanDifference,
    PercentileChanges,
    RateChange,
    intervals,
    weights_of_resamples,
)


@given(
    st.lists(
        st.tuples(st.floats(0.01, 10), st.floats(0.01, 10), st.integers(0, 3)),
        min_size=2,
        max_size=40,
    ).filter(lambda rows: sum(weight for _, _, weight in rows) > 0),
    st.sampled_from([50.0, 90.0, 95.0, 99.0]),
)
@settings(max_examples=200, deadline=None)
def test_weighted_percentiles_are_those_of_the_repeated_sample(
    rows: list[tuple[float, float, int]], level: float
) -> None:
    base, other, weights = (np.array(column) for column in zip(*rows, strict=True))
    [change] = PercentileChanges(base, other, [level]).changes(weights.astype(np.float64))
    sides = [
        np.percentile(np.repeat(side, weights.astype(np.int64)), level) for side in (base, other)
    ]
    assert change == pytest.approx(sides[1] / sides[0] - 1, rel=1e-9, abs=1e-12)


def test_statistics_skip_what_is_not_known() -> None:
    base, other = np.array([1.0, np.nan, 3.0]), np.array([2.0, 5.0, 3.0])
    ones = np.ones(3)
    assert MeanDifference(base, other).changes(ones) == (0.5,)
    assert MeanDifference(base, other).changes(np.array([2.0, 9.0, 0.0])) == (1.0,)
    assert np.isnan(MeanDifference(base, other).changes(np.array([0.0, 9.0, 0.0]))[0])
    assert PercentileChanges(base, other, [50]).changes(ones) == (0.25,)
    rate = RateChange(np.array([1.0, 1.0]), np.array([1.0, 0.0]), (2.0, 1.0))
    assert rate.changes(np.ones(2)) == (0.0,)


def test_whole_queries_are_resampled() -> None:
    codes = np.array([0, 0, 1, 2, 2, 2])
    for weights in [*weights_of_resamples(codes, 3)][:50]:
        assert len(set(weights[:2])) == 1
        assert len(set(weights[3:])) == 1
        assert weights[0] + weights[2] + weights[3] == 3


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(11)
    covered = 0
    for seed in range(60):
        base = random.lognormal(0, 0.5, 60)
        other = base * random.lognormal(np.log(0.8), 0.2, 60)
        [[found]] = intervals([PercentileChanges(base, other, [50])], np.arange(60), seed)
        assert found is not None
        # Both are lognormal: the median of the product is 0.8 of the base's.
        covered += found.low <= -0.2 <= found.high
    assert 52 <= covered <= 60
