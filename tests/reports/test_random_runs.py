"""Every metric of random runs against plain NumPy and SciPy, request by request."""

from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from s2l.replayer.run import CHUNK_SCHEMA
from s2l.reports import metrics
from s2l.reports.attainment import meets
from s2l.reports.bootstrap import carries_interval, paired_ratio_interval, quantile_interval
from s2l.reports.pairs import Pairs
from s2l.reports.percentiles import LEVELS, Distribution, samples_needed
from s2l.reports.slo import Slo

TIMES = st.integers(0, 10**9)
FEW = settings(max_examples=60, deadline=None)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """A request with times in order, or one that failed before its first token."""
    start = draw(TIMES)
    due = start + draw(st.integers(0, 10**7))
    gaps = draw(st.lists(st.integers(0, 10**6), max_size=6))
    row: dict[str, Any] = {
        "query_id": f"q{draw(st.integers(0, 5))}",
        "delivery": draw(st.sampled_from(["stream", "wait"])),
        "start_intended_us": start,
        "start_us": start + draw(st.integers(0, 1000)),
        "context_intended_us": due,
        "context_us": due + draw(st.integers(0, 1000)),
        "prompt_tokens": draw(st.none() | st.integers(0, 900)),
        "cached_tokens": draw(st.none() | st.integers(0, 900)),
        "output_tokens": len(gaps),
        "error_type": draw(st.sampled_from([None, None, None, "timeout"])),
    }
    times = (due + 1 + np.cumsum(gaps)).tolist()
    return row | {
        "token_us": times,
        "token_n": [1] * len(times),
        "first_token_us": times[0] if times else None,
        "last_token_us": times[-1] if times else None,
        "end_us": (times[-1] if times else due) + 5,
    }


def difference_s(row: dict[str, Any], earlier: str, later: str) -> float:
    if row[earlier] is None or row[later] is None:
        return np.nan
    return (row[later] - row[earlier]) / 1e6


SPANS = {
    metrics.ttft_s: ("context_intended_us", "first_token_us"),
    metrics.ttft_service_s: ("context_us", "first_token_us"),
    metrics.ttft_user_s: ("start_intended_us", "first_token_us"),
    metrics.e2e_s: ("context_intended_us", "last_token_us"),
    metrics.e2e_user_s: ("start_intended_us", "last_token_us"),
    metrics.schedule_lag_s: ("start_intended_us", "start_us"),
    metrics.retrieval_s: ("start_intended_us", "context_intended_us"),
}


@FEW
@given(st.lists(requests(), max_size=12))
def test_latencies(synthetic: ModuleType, rows: list[dict[str, Any]]) -> None:
    table = synthetic.request_table(*(synthetic.request(**row) for row in rows))
    for metric, (earlier, later) in SPANS.items():
        expected = [difference_s(row, earlier, later) for row in rows]
        np.testing.assert_allclose(metric(table), expected, rtol=1e-12)
    tpot = [
        difference_s(row, "first_token_us", "last_token_us") / (n - 1)
        if (n := row["output_tokens"]) > 1
        else np.nan
        for row in rows
    ]
    np.testing.assert_allclose(metrics.tpot_s(table), tpot)
    gaps = [gap / 1e6 for row in rows for gap in np.diff(row["token_us"])]
    np.testing.assert_allclose(metrics.itl_s(table), gaps)


@FEW
@given(st.lists(requests(), max_size=12))
def test_totals_and_rates(synthetic: ModuleType, rows: list[dict[str, Any]]) -> None:
    table = synthetic.request_table(*(synthetic.request(**row) for row in rows))
    done = [row for row in rows if row["error_type"] is None]
    if not rows:
        assert metrics.completion_s(table) is None
        return
    window = (max(r["end_us"] for r in rows) - min(r["start_intended_us"] for r in rows)) / 1e6
    assert metrics.completion_s(table) == pytest.approx(window)
    assert metrics.request_rate(table) == pytest.approx(len(done) / window)
    if done:
        tokens = sum(row["output_tokens"] for row in done)
        assert metrics.output_token_rate(table) == pytest.approx(tokens / window)
        prompts = [row["prompt_tokens"] for row in done]
        known = None if None in prompts else pytest.approx((sum(prompts) + tokens) / window)
        assert metrics.total_token_rate(table) == known
    slo = Slo("ttft_s", None, 0.5)
    limit = [
        r["error_type"] is None and difference_s(r, *SPANS[metrics.ttft_s]) < 0.5 for r in rows
    ]
    np.testing.assert_array_equal(meets(table, [slo]), limit)


@FEW
@given(st.lists(requests(), max_size=16))
def test_pairs(synthetic: ModuleType, rows: list[dict[str, Any]]) -> None:
    table = synthetic.request_table(*(synthetic.request(**row) for row in rows))
    pairs = Pairs.of(table)
    sides: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for at, row in enumerate(rows):
        key = (row["query_id"], row["delivery"])
        sides.setdefault(key, []).append((row["start_intended_us"], at))
    expected, queries = set(), 0
    for query in {row["query_id"] for row in rows}:
        wait, stream = (sorted(sides.get((query, name), [])) for name in ("wait", "stream"))
        queries += max(len(wait), len(stream))
        for (_, one), (_, other) in zip(wait, stream, strict=False):
            if rows[one]["error_type"] is None and rows[other]["error_type"] is None:
                expected.add((one, other))
    found = set(zip(pairs.wait_rows.to_pylist(), pairs.stream_rows.to_pylist(), strict=True))
    assert found == expected
    assert pairs.unpaired == queries - len(expected)


@st.composite
def chunk_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    rows = []
    for request in range(draw(st.integers(0, 4))):
        context = 0
        for seq in range(draw(st.integers(0, 5))):
            kind = draw(st.sampled_from(["append", "replace"]))
            kept = draw(st.integers(0, context)) if kind == "replace" else context
            context = kept + draw(st.integers(0, 50))
            rows.append(
                {
                    "request_id": f"r{request}",
                    "seq": seq,
                    "kind": kind,
                    "arrival_intended_us": draw(TIMES),
                    "send_intended_us": 0,
                    "context_tokens": context,
                    "kept_tokens": kept,
                }
            )
    return draw(st.permutations(rows))


@FEW
@given(chunk_rows())
def test_reuse(synthetic: ModuleType, rows: list[dict[str, Any]]) -> None:
    chunks = pa.Table.from_pylist(rows, schema=CHUNK_SCHEMA)
    by_place = {(row["request_id"], row["seq"]): row for row in rows}
    expected = []
    for row in rows:
        before = by_place.get((row["request_id"], row["seq"] - 1))
        known = row["kind"] == "replace" and before is not None and before["context_tokens"] > 0
        expected.append(row["kept_tokens"] / before["context_tokens"] if known else np.nan)
    np.testing.assert_allclose(metrics.reuse(chunks), expected)


@FEW
@given(st.lists(st.floats(-1e6, 1e6) | st.just(np.nan), max_size=300))
def test_distributions(values: list[float]) -> None:
    found = Distribution.of(np.array(values, dtype=np.float64))
    known = np.array([value for value in values if not np.isnan(value)])
    assert found.n == known.size
    for name, level in LEVELS.items():
        if known.size >= samples_needed(level):
            expected = scipy.stats.scoreatpercentile(known, level)
            assert found.level(name) == pytest.approx(expected, rel=1e-9, abs=1e-9)
        else:
            assert found.level(name) is None
    if known.size:
        assert (found.min, found.max) == (known.min(), known.max())


@pytest.mark.parametrize(("level", "n"), [(50, 41), (95, 200), (99, 2_000)])
def test_intervals_agree_with_scipy(level: int, n: int) -> None:
    values = np.random.default_rng(level).lognormal(0, 0.5, n)
    found = quantile_interval(values, level, seed=0)
    assert found is not None
    expected = scipy.stats.bootstrap(
        (values,),
        lambda sample, axis: np.percentile(sample, level, axis=axis),
        n_resamples=4_000,
        method="percentile",
        random_state=np.random.default_rng(1),
    ).confidence_interval
    np.testing.assert_allclose([found.low, found.high], expected, rtol=0.04)


@pytest.mark.parametrize(("level", "n"), [(50, 60), (95, 400), (99, 4_000), (50, 4_000)])
def test_paired_intervals_agree_with_scipy(level: int, n: int) -> None:
    random = np.random.default_rng(n + level)
    common = random.lognormal(0, 0.4, n)
    wait, stream = (common * random.lognormal(mean, 0.2, n) for mean in (1.0, 0.0))
    found = paired_ratio_interval(wait, stream, level, seed=0)
    assert found is not None

    def ratio(one: Any, other: Any, axis: int) -> Any:
        return np.percentile(one, level, axis=axis) / np.percentile(other, level, axis=axis)

    expected = scipy.stats.bootstrap(
        (wait, stream),
        ratio,
        paired=True,
        n_resamples=1_500,
        batch=250,
        method="percentile",
        random_state=np.random.default_rng(1),
    ).confidence_interval
    np.testing.assert_allclose([found.low, found.high], expected, rtol=0.05)


@pytest.mark.parametrize(("level", "fewest"), [(50, 6), (95, 59), (99, 299)])
def test_an_interval_needs_values_on_both_sides(level: int, fewest: int) -> None:
    assert carries_interval(fewest, level)
    assert not carries_interval(fewest - 1, level)
    assert quantile_interval(np.arange(fewest - 1.0), level, 0) is None
    assert quantile_interval(np.arange(float(fewest)), level, 0) is not None
