from collections.abc import Callable
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest

from s2l.replayer.run import CHUNK_SCHEMA, Run
from s2l.reports import metrics
from s2l.reports.request_scan import NO_EVENTS
from s2l.reports.summary import summarize
from s2l.reports.workload import Workload


@pytest.fixture
def table(synthetic: ModuleType) -> pa.Table:
    late = {
        "start_intended_us": 2_000_000,
        "start_us": 2_004_000,
        "context_intended_us": 3_000_000,
        "context_us": 3_002_000,
        "first_token_us": 4_000_000,
        "last_token_us": 4_900_000,
        "end_us": 5_000_000,
        "token_us": [4_000_000, 4_600_000, 4_900_000],
        "token_n": [2, 2, 6],
        "output_tokens": 10,
        "cached_tokens": 0,
    }
    return synthetic.request_table(
        synthetic.request(),
        synthetic.request(request_id="stream-1", query_id="q1", **late),
        synthetic.failed("timeout", request_id="stream-2", query_id="q2", end_us=6_000_000),
    )


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (metrics.ttft_s, [0.2, 1.0, np.nan]),
        (metrics.ttft_service_s, [0.2, 0.998, np.nan]),
        (metrics.ttft_user_s, [1.2, 2.0, np.nan]),
        (metrics.tpot_s, [0.1, 0.1, np.nan]),
        (metrics.ttft_answer_s, [0.2, 1.0, np.nan]),
        (metrics.retrieval_s, [1.0, 1.0, 1.0]),
        (metrics.e2e_s, [0.4, 1.9, np.nan]),
        (metrics.e2e_user_s, [1.4, 2.9, np.nan]),
        (metrics.schedule_lag_s, [0.0, 0.004, 0.0]),
        (metrics.prefill_hidden, [0.8, 0.0, np.nan]),
    ],
)
def test_one_value_per_request(metric, expected, table: pa.Table) -> None:
    np.testing.assert_allclose(metric(table), expected, rtol=1e-12)


def test_gaps_do_not_cross_requests(table: pa.Table) -> None:
    np.testing.assert_allclose(metrics.itl_s(table), [0.1, 0.1, 0.6, 0.3])


def test_tokens_per_event_stand_beside_the_gaps(
    table: pa.Table, make_run: Callable[..., Run]
) -> None:
    latencies = summarize(make_run(*table.to_pylist())).deliveries[0].latencies
    assert latencies.itl_s.n == 4
    assert latencies.tokens_per_event == pytest.approx(13 / 6)


def test_gaps_of_a_filtered_table(table: pa.Table) -> None:
    np.testing.assert_allclose(metrics.itl_s(table.slice(1)), [0.6, 0.3])


def test_window_counts_failures_and_rates_do_not(table: pa.Table) -> None:
    assert metrics.completion_s(table) == 6.0
    assert metrics.request_rate(table) == pytest.approx(2 / 6)
    assert metrics.output_token_rate(table) == pytest.approx(13 / 6)
    assert metrics.total_token_rate(table) == pytest.approx(213 / 6)
    assert metrics.total(table, "cached_tokens") == 80


def test_one_unknown_count_makes_the_sum_unknown(synthetic: ModuleType) -> None:
    table = synthetic.request_table(synthetic.request(), synthetic.request(output_tokens=None))
    assert metrics.total(table, "output_tokens") is None
    assert metrics.output_token_rate(table) is None
    assert np.isnan(metrics.tpot_s(table)[1])


def test_nothing_divides_by_zero(synthetic: ModuleType) -> None:
    row = synthetic.request(prompt_tokens=0, output_tokens=1, end_us=0)
    table = synthetic.request_table(row)
    assert np.isnan(metrics.prefill_hidden(table)).all()
    assert np.isnan(metrics.tpot_s(table)).all()
    assert metrics.request_rate(table) is None


def test_prefill_work_counts_what_was_thrown_away(synthetic: ModuleType) -> None:
    rows = [
        synthetic.request(prompt_tokens=200, invalidated_tokens=50, cached_tokens=190),
        synthetic.request(prompt_tokens=200, invalidated_tokens=0),
        synthetic.request(prompt_tokens=200, invalidated_tokens=None),
        synthetic.request(prompt_tokens=0, invalidated_tokens=9),
        synthetic.request(prompt_tokens=None),
    ]
    found = metrics.prefill_work(synthetic.request_table(*rows))
    np.testing.assert_array_equal(found, [1.25, 1.0, np.nan, np.nan, np.nan])


def test_reuse_compares_with_the_chunk_before_of_the_same_request() -> None:
    # request, seq, kind, tokens of the context after it, tokens kept; in no order
    found = [
        ("b", 1, "replace", 80, 30),
        ("a", 0, "replace", 100, 0),
        ("a", 2, "append", 90, 60),
        ("b", 0, "append", 40, 0),
        ("a", 1, "replace", 60, 25),
        ("a", 3, "replace", 90, 90),
        ("c", 0, "replace", 0, 0),
        ("c", 1, "replace", 50, 0),
        ("d", 0, "append", None, None),
        ("d", 1, "replace", None, None),
        ("e", 0, "append", 10, 0),
        ("e", 1, "replace", 10, 0),
    ]
    names = ("request_id", "seq", "kind", "context_tokens", "kept_tokens")
    times = {"arrival_intended_us": 0, "send_intended_us": 0}
    rows = [times | dict(zip(names, row, strict=True)) for row in found]
    chunks = pa.Table.from_pylist(rows, schema=CHUNK_SCHEMA)
    nan = np.nan
    expected = [0.75, nan, nan, nan, 0.25, 1.0, nan, nan, nan, nan, nan, 0.0]
    np.testing.assert_array_equal(metrics.reuse(chunks), expected)
    assert metrics.reuse(CHUNK_SCHEMA.empty_table()).size == 0


def test_no_requests(synthetic: ModuleType) -> None:
    table = synthetic.request_table()
    assert metrics.ttft_s(table).size == 0
    assert metrics.itl_s(table).size == 0
    assert metrics.completion_s(table) is None
    assert metrics.total_token_rate(table) is None


def test_without_events_there_are_no_tokens_per_event() -> None:
    assert NO_EVENTS.tokens_per_event is None


def test_chunk_lag() -> None:
    row = {"request_id": "a", "seq": 0, "kind": "append", "arrival_intended_us": 100}
    rows = [
        row | {"send_intended_us": 1_000, "handed_us": 1_500, "sent_us": 3_500},
        row | {"send_intended_us": 1_000, "handed_us": None, "sent_us": 3_500},
        row | {"send_intended_us": 1_000, "handed_us": None, "sent_us": None},
    ]
    chunks = pa.Table.from_pylist(rows, schema=CHUNK_SCHEMA)
    np.testing.assert_allclose(metrics.chunk_lag_s(chunks), [0.0005, 0.0025, np.nan])


def test_the_answer_begins_after_the_reasoning(synthetic: ModuleType) -> None:
    rows = [
        synthetic.request(first_answer_us=1_350_000, reasoning_tokens=2),
        synthetic.request(first_answer_us=None, reasoning_tokens=3),  # nothing but reasoning
        synthetic.request(first_answer_us=None, reasoning_tokens=None),
        synthetic.request(first_answer_us=1_200_000, reasoning_tokens=0),
    ]
    found = metrics.ttft_answer_s(synthetic.request_table(*rows))
    np.testing.assert_allclose(found, [0.35, np.nan, 0.2, 0.2])


def test_arrival_gaps_are_inside_requests() -> None:
    times = [("a", 0, 100_000), ("b", 1, 900_000), ("a", 1, 350_000), ("b", 0, 400_000)]
    rows = [
        {"request_id": name, "seq": seq, "kind": "append", "arrival_intended_us": at}
        | {"send_intended_us": at}
        for name, seq, at in times
    ]
    chunks = pa.Table.from_pylist(rows, schema=CHUNK_SCHEMA)
    np.testing.assert_allclose(metrics.arrival_gaps_s(chunks), [0.25, 0.5])
    assert metrics.arrival_gaps_s(chunks.slice(0, 1)).size == 0
    assert metrics.arrival_gaps_s(CHUNK_SCHEMA.empty_table()).size == 0


def test_workload_of_requests_with_and_without_context(synthetic: ModuleType) -> None:
    rows = [
        {"request_id": "stream-0", "seq": seq, "kind": "append", "arrival_intended_us": at}
        | {"send_intended_us": at, "tokens": 50}
        for seq, at in enumerate((100_000, 600_000))
    ]
    requests = synthetic.request_table(
        synthetic.request(),
        synthetic.request(request_id="stream-1", start_intended_us=500_000, prompt_tokens=None),
    )
    found = Workload.of(requests, pa.Table.from_pylist(rows, schema=CHUNK_SCHEMA))
    assert (found.chunks_per_query.n, found.chunks_per_query.mean) == (2, 1.0)
    assert (found.arrival_gap_s.n, found.arrival_gap_s.max) == (1, 0.5)
    assert (found.retrieval_s.min, found.retrieval_s.max) == (0.5, 1.0)
    assert found.start_gap_s.max == 0.5
    assert (found.prompt_tokens.n, found.chunk_tokens.mean) == (1, 50)
