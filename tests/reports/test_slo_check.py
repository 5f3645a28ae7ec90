"""Objectives at percentiles, against values that are known."""

import json
import math

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from s2l.replayer.run import REQUEST_SCHEMA
from s2l.reports.slo import parse_slos
from s2l.reports.slo_check import SloCheck, check_slos


def requests(ttft_ms: list[float | None], *, unsent: int = 0, tokens: int = 11) -> pa.Table:
    """Requests whose context was due at 1 s; None is one that failed. Tokens come 10 ms apart."""
    rows = []
    for number, ttft in enumerate([*ttft_ms, *[None] * unsent]):
        first_us = None if ttft is None else 1_000_000 + round(ttft * 1e3)
        last_us = None if first_us is None else first_us + 10_000 * (tokens - 1)
        error = None if ttft is not None else "timeout" if number < len(ttft_ms) else "unsent"
        row = dict.fromkeys(REQUEST_SCHEMA.names)
        rows.append(
            row
            | {"request_id": f"r{number}", "query_id": f"q{number}", "delivery": "stream"}
            | {"start_intended_us": 0, "context_intended_us": 1_000_000, "context_us": 1_000_500}
            | {"first_token_us": first_us, "last_token_us": last_us, "error_type": error}
            | {"output_tokens": tokens if ttft is not None else None, "output_text": ""}
            | {"token_us": [], "token_n": []}
        )
    return pa.Table.from_pylist(rows, REQUEST_SCHEMA)


def check(table: pa.Table, slo: str) -> SloCheck:
    (found,) = check_slos(table, parse_slos(slo))
    return found


def test_a_percentile_is_numpys() -> None:
    values = [float(v) for v in np.random.default_rng(3).uniform(50, 900, 137).round(3)]
    for level in (50, 90, 95, 99):
        found = check(requests(values), f"ttft_s:p{level}<500ms")
        assert found.value_s == pytest.approx(np.percentile(values, level) / 1e3, rel=1e-9)
        assert found.met == (found.value_s < 0.5)


def test_what_it_says() -> None:
    table = requests([100.0] * 19 + [612.0])
    assert check(table, "ttft_s:p50<500ms").text == "ttft_s p50 100 ms (limit 500 ms)"
    assert check(table, "tpot_s:p90<9ms").text == "tpot_s p90 10.0 ms (limit 9.00 ms)"
    assert not check(table, "tpot_s:p90<9ms").met
    assert check(table, "ttft_service_s:p50<1s").value_s == pytest.approx(0.0995)


def test_too_few_requests_meet_nothing() -> None:
    found = check(requests([1.0] * 99), "ttft_s:p99<1s")
    assert (found.value_s, found.met) == (None, False)
    assert found.text == "ttft_s p99 needs 100 requests, 99 were sent"
    assert check(requests([1.0] * 100), "ttft_s:p99<1s").met


def test_failures_are_slower_than_any_limit() -> None:
    assert check(requests([1.0] * 96 + [None] * 4), "ttft_s:p95<1s").met
    found = check(requests([1.0] * 94 + [None] * 6), "ttft_s:p95<1h".replace("1h", "3600s"))
    assert (found.value_s, found.met) == (math.inf, False)
    assert found.text == "ttft_s p95 on a failed request (limit 3,600 s)"
    # Between the last success and the first failure there is no value to interpolate.
    assert check(requests([1.0] * 10 + [None] * 10), "ttft_s:p50<1s").value_s == math.inf
    assert not check(requests([None] * 50), "ttft_s:p50<1s").met


def test_the_outcome_is_in_json_where_the_value_is_not() -> None:
    tables = {
        "met": requests([1.0] * 20),
        "missed": requests([3000.0] * 20),
        "failed": requests([1.0] * 10 + [None] * 10),
        "too_few": requests([1.0]),
    }
    for outcome, table in tables.items():
        said = json.loads(msgspec.json.encode(check(table, "ttft_s:p50<2s")))
        assert said["outcome"] == outcome
        assert (said["value_s"] is None) == (outcome in ("failed", "too_few"))


def test_unsent_requests_are_not_the_servers() -> None:
    found = check(requests([1.0] * 50, unsent=50), "ttft_s:p50<1s")
    assert (found.requests, found.met) == (50, True)


def test_answers_of_one_token_have_no_time_per_token() -> None:
    found = check(requests([1.0] * 30, tokens=1), "tpot_s:p50<1s")
    assert (found.requests, found.value_s) == (0, None)


def test_a_percentile_is_needed() -> None:
    with pytest.raises(ValueError, match="ttft_s<500ms names no percentile"):
        check(requests([1.0]), "ttft_s<500ms")
