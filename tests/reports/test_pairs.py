from types import ModuleType
from typing import Any

import numpy as np
import pytest

from s2l.reports.gain import StreamingGain
from s2l.reports.pairs import Pairs, align


def _row(synthetic: ModuleType, delivery: str, query: int, ttft_us: int, **more: Any) -> dict:
    ids = {"request_id": f"{delivery}-{query}", "query_id": f"q{query}", "delivery": delivery}
    return synthetic.request(**ids, first_token_us=1_000_000 + ttft_us, **more)


def test_gain_is_wait_over_stream_by_query(synthetic: ModuleType) -> None:
    stream = [_row(synthetic, "stream", i, 200_000) for i in range(7)]
    wait = [_row(synthetic, "wait", i, 200_000 * (i + 1)) for i in reversed(range(7))]
    gain = StreamingGain.of(Pairs.of(synthetic.request_table(*stream, *wait)), seed=1)
    assert (gain.pairs, gain.unpaired) == (7, 0)
    assert gain.median == pytest.approx(4.0)
    assert gain.interval is not None
    assert gain.interval.low >= 1
    assert gain.interval.high <= 7
    p50 = gain.sides[0]
    assert (p50.percentile, p50.ratio) == ("p50", pytest.approx(4.0))
    assert (p50.wait_s, p50.stream_s) == (pytest.approx(0.8), pytest.approx(0.2))
    assert gain.sides[1].ratio is None


def test_queries_without_a_partner_are_counted(synthetic: ModuleType) -> None:
    table = synthetic.request_table(
        _row(synthetic, "stream", 0, 100_000),
        _row(synthetic, "stream", 1, 100_000),
        _row(synthetic, "stream", 2, 100_000),
        _row(synthetic, "stream", 3, 0),
        _row(synthetic, "wait", 0, 300_000),
        synthetic.failed("timeout", request_id="w1", query_id="q1", delivery="wait"),
        _row(synthetic, "wait", 3, 300_000),
        _row(synthetic, "wait", 4, 300_000),
    )
    gain = StreamingGain.of(Pairs.of(table), seed=1)
    assert (gain.pairs, gain.unpaired) == (1, 4)
    assert gain.single == pytest.approx(3.0)
    assert gain.median is None
    assert gain.interval is None


def test_a_query_asked_twice_is_paired_turn_by_turn(synthetic: ModuleType) -> None:
    again = {"start_intended_us": 500_000}
    table = synthetic.request_table(
        _row(synthetic, "stream", 0, 100_000, **again),
        _row(synthetic, "stream", 0, 200_000),
        _row(synthetic, "wait", 0, 400_000),
        _row(synthetic, "wait", 0, 500_000, **again),
    )
    np.testing.assert_allclose(np.sort(Pairs.of(table).gains()), [2.0, 5.0])


def test_rates_are_paired_apart(synthetic: ModuleType) -> None:
    table = synthetic.request_table(
        _row(synthetic, "stream", 0, 100_000, rate=1.0),
        _row(synthetic, "stream", 0, 100_000, rate=2.0),
        _row(synthetic, "wait", 0, 700_000, rate=2.0),
    )
    pairs = Pairs.of(table)
    assert (len(pairs), pairs.unpaired) == (1, 1)
    assert pairs.stream["rate"].to_pylist() == [2.0]


def test_alignment_keeps_the_order_and_the_lonely(synthetic: ModuleType) -> None:
    table = synthetic.request_table(
        _row(synthetic, "stream", 1, 1),
        _row(synthetic, "stream", 0, 1),
        _row(synthetic, "wait", 0, 1),
    )
    rows = [{"wait": None, "stream": 0}, {"wait": 2, "stream": 1}]
    assert align(table).to_pylist() == rows


def test_repeats_and_moments_of_asking_are_paired_apart(synthetic: ModuleType) -> None:
    table = synthetic.request_table(
        _row(synthetic, "stream", 0, 100_000, repeat=1, start_intended_us=0),
        _row(synthetic, "stream", 0, 200_000, repeat=0, start_intended_us=9),
        _row(synthetic, "wait", 0, 800_000, repeat=0, start_intended_us=5),
        _row(synthetic, "wait", 0, 700_000, repeat=1, start_intended_us=9),
        _row(synthetic, "stream", 0, 100_000, answer_at="25%"),
        _row(synthetic, "wait", 0, 300_000, answer_at="25%"),
        _row(synthetic, "wait", 0, 300_000, answer_at="50%"),
    )
    pairs = Pairs.of(table)
    assert sorted(zip(pairs.wait_rows.to_pylist(), pairs.stream_rows.to_pylist(), strict=True)) == [
        (2, 1),
        (3, 0),
        (5, 4),
    ]
    assert pairs.unpaired == 1


def test_each_percentile_of_the_gain_has_its_interval(synthetic: ModuleType) -> None:
    rows = [_row(synthetic, "stream", i, 100_000 + 1_000 * i) for i in range(100)]
    rows += [_row(synthetic, "wait", i, 2 * (100_000 + 1_000 * i)) for i in range(100)]
    sides = StreamingGain.of(Pairs.of(synthetic.request_table(*rows)), seed=1).sides
    found = {side.percentile: (side.ratio, side.interval) for side in sides}
    assert found["p50"][0] == pytest.approx(2.0)
    interval = found["p50"][1]
    assert interval is not None
    # Waiting is twice as slow in every pair, and pairs are drawn as pairs.
    assert (interval.low, interval.high) == (pytest.approx(2.0), pytest.approx(2.0))
    assert found["p99"] == (pytest.approx(2.0), None)
    assert found["p999"] == (None, None)
