from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from s2l.replayer.run import Run
from s2l.reports import query_bootstrap
from s2l.reports.bootstrap import median_interval, paired_ratio_interval, quantile_interval
from s2l.reports.headline import headline
from s2l.reports.query_bootstrap import numbered
from s2l.reports.summary import summarize

MakeRun = Callable[..., Run]
Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
Codes = np.ndarray[tuple[int], np.dtype[np.int64]]


def sample(queries: int, times: int, seed: int = 5) -> tuple[Floats, Codes]:
    """Values that differ much between queries and little within one."""
    random = np.random.default_rng(seed)
    middles = np.repeat(random.lognormal(0, 0.5, queries), times)
    return middles * random.lognormal(0, 0.05, middles.size), np.repeat(np.arange(queries), times)


def by_hand(values: Floats, codes: Codes, level: float, n: int = 4_000) -> list[float]:
    """The interval from resamples of whole queries, each really put together."""
    random = np.random.default_rng(1)
    of_query = [values[codes == code] for code in np.unique(codes)]
    found = [
        np.percentile(
            np.concatenate(
                [of_query[at] for at in random.integers(0, len(of_query), len(of_query))]
            ),
            level,
        )
        for _ in range(n)
    ]
    return np.quantile(found, [0.025, 0.975]).tolist()


def test_queries_asked_once_are_a_plain_sample() -> None:
    values, codes = sample(50, 1)
    assert numbered(codes) is None
    assert median_interval(values, 3, codes=codes) == median_interval(values, 3)


def test_codes_without_a_gap() -> None:
    found = numbered(np.array([4, 0, 4, 9]))
    assert found is not None
    assert found.tolist() == [1, 0, 1, 2]


@pytest.mark.parametrize("level", [50, 90])
def test_the_interval_is_that_of_resampled_queries(level: float) -> None:
    values, codes = sample(60, 4)
    found = quantile_interval(values, level, 0, codes=codes)
    assert found is not None
    np.testing.assert_allclose([found.low, found.high], by_hand(values, codes, level), rtol=0.04)


def test_repeats_do_not_pass_for_new_queries() -> None:
    values, codes = sample(40, 25)
    whole, each = median_interval(values, 0, codes=codes), median_interval(values, 0)
    assert whole is not None
    assert each is not None
    assert whole.high - whole.low > 3 * (each.high - each.low)


def test_many_values_have_the_interval_of_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    values, codes = sample(300, 5)
    other = values * np.random.default_rng(2).lognormal(0.5, 0.2, values.size)
    drawn = [
        quantile_interval(values, 50, 0, codes=codes),
        paired_ratio_interval(other, values, 50, 0, codes=codes),
    ]
    monkeypatch.setattr(query_bootstrap, "DIRECT_LIMIT", 0)
    normal = [
        quantile_interval(values, 50, 0, codes=codes),
        paired_ratio_interval(other, values, 50, 0, codes=codes),
    ]
    for one, same in zip(drawn, normal, strict=True):
        assert one is not None
        assert same is not None
        np.testing.assert_allclose([one.low, one.high], [same.low, same.high], rtol=0.04)


def test_the_queries_have_to_be_enough() -> None:
    values, codes = sample(5, 100)
    assert median_interval(values, 0, codes=codes) is None
    assert paired_ratio_interval(values, values, 50, 0, codes=codes) is None


def test_a_gain_says_of_how_many_queries_it_is(make_run: MakeRun, synthetic: ModuleType) -> None:
    rows = [
        synthetic.timed(f"q{n % 6}", delivery, n * 10**6, ttft_s)
        for delivery, ttft_s in (("stream", 0.25), ("wait", 0.5))
        for n in range(12)
    ]
    summary = summarize(make_run(*rows))
    assert summary.gain is not None
    assert (summary.gain.pairs, summary.gain.queries, summary.gain.median) == (12, 6, 2.0)
    assert str(headline(summary)) == (
        "First token 2.0x sooner (95 % interval 2.0 to 2.0), "
        "at the median of 12 pairs of 6 queries."
    )
