import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from s2l.replayer.run import Run, Validity
from s2l.reports.bootstrap import Interval
from s2l.reports.comparison.cells import rows as cells
from s2l.reports.comparison.change import Change
from s2l.reports.comparison.compare import Comparison, Options, compare
from s2l.reports.comparison.json import comparison_json
from s2l.reports.comparison.words import sentences
from s2l.reports.slo import parse_request_slos
from s2l.reports.summary import summarize

MakeNamed = Callable[..., Run]
MakeRows = Callable[..., list[dict[str, Any]]]
VALID = Validity(verdict="valid")


def verdicts(found: Comparison) -> dict[str, tuple[str, str]]:
    return {row.label: (row.verdict, row.says) for row in cells(found.conditions[0])}


def test_a_known_change_is_exact(
    change_of: Callable[..., Change], named: MakeNamed, rows: MakeRows
) -> None:
    found = compare(named("a", rows(100)), named("b", rows(100, 0.9)))
    assert [str(one.condition) for one in found.conditions] == ["stream"]
    p50 = change_of(found, "ttft_s", "p50")
    assert p50.n == 100
    assert p50.base == pytest.approx(0.1495)
    assert p50.other == pytest.approx(0.13455)
    assert p50.change == pytest.approx(-0.1)
    assert p50.interval is not None
    assert (p50.interval.low, p50.interval.high) == pytest.approx((-0.1, -0.1))
    assert p50.verdict == "better"
    assert change_of(found, "ttft_s", "p95").verdict == "better"
    p99 = change_of(found, "ttft_s", "p99")
    assert (p99.change, p99.interval, p99.verdict) == (pytest.approx(-0.1), None, "unknown")
    assert change_of(found, "tpot_s", "p50").verdict == "none"
    assert change_of(found, "success").change == 0


def test_the_same_run_has_no_difference(named: MakeNamed, rows: MakeRows) -> None:
    found = compare(named("a", rows(30)), named("b", rows(30)))
    assert {one.verdict for one in found.conditions[0].changes} == {"none", "unknown"}
    assert [one.change for one in found.conditions[0].changes if one.change] == []
    assert (
        sentences(found, "A", "B")[-1] == "stream: A and B give the same text for 30 of 30 queries."
    )
    assert found.remarks == ()


def test_few_queries_have_changes_and_no_intervals(
    change_of: Callable[..., Change], named: MakeNamed, rows: MakeRows
) -> None:
    found = compare(named("a", rows(5)), named("b", rows(5, 0.5)))
    p50, p95 = change_of(found, "ttft_s", "p50"), change_of(found, "ttft_s", "p95")
    assert (p50.change, p50.interval) == (pytest.approx(-0.5), None)
    assert (p95.base, p95.change) == (None, None)
    said = sentences(found, "A", "B")
    assert "no difference in TTFT, user TTFT, TPOT or end-to-end time can be told" in said[0]
    assert "(too few queries for an interval at p50)" in said[0]


def test_failures_count_and_are_in_no_latency(
    change_of: Callable[..., Change], named: MakeNamed, rows: MakeRows, synthetic: ModuleType
) -> None:
    broken = rows(20)
    for i in range(10):
        row = broken[i]
        broken[i] = synthetic.failed("timeout") | {
            k: row[k]
            for k in (
                "request_id",
                "query_id",
                "start_intended_us",
                "context_intended_us",
                "end_us",
            )
        }
    found = compare(named("a", rows(20)), named("b", broken))
    success = change_of(found, "success")
    assert (success.base, success.other, success.verdict) == (1.0, 0.5, "worse")
    assert change_of(found, "ttft_s", "p50").n == 10
    assert found.conditions[0].succeeded == 10
    rate = change_of(found, "request_rate")
    assert rate.change == pytest.approx(-0.5)
    for label in ("Requests / s", "Output tokens / s", "All tokens / s"):
        assert verdicts(found)[label] == ("worse", "worse")
    assert any(
        "share of successes of B is lower by 50 points" in one for one in sentences(found, "A", "B")
    )


def test_goodput_is_what_meets_every_objective(
    change_of: Callable[..., Change], named: MakeNamed, rows: MakeRows
) -> None:
    options = Options(slos=parse_request_slos("ttft_s<110ms,tpot_s<101ms"))
    found = compare(named("a", rows(40)), named("b", rows(40, 0.9)), options)
    attained = change_of(found, "attainment")
    # 100..109 ms of 40 in the base; times 0.9, 100..122 ms are under 110 ms.
    assert (attained.base, attained.other) == (10 / 40, 23 / 40)
    window = 39 + 0.4 + 0.139 + 0.2
    assert change_of(found, "goodput").base == pytest.approx(10 / window)
    assert change_of(found, "goodput").verdict == "better"


@pytest.mark.parametrize(("longer", "says"), [(2, "higher"), (0.5, "lower")])
def test_more_tokens_at_the_same_pace_are_not_better(
    named: MakeNamed, rows: MakeRows, longer: float, says: str
) -> None:
    other = rows(30)
    for row in other:
        row["output_tokens"] = int(row["output_tokens"] * longer)
    found = compare(named("a", rows(30)), named("b", other))
    said = verdicts(found)
    assert said["Output tokens / s"] == ("changed", says)
    assert said["Requests / s"] == ("none", "no clear difference")


def test_gain_and_parity_need_both_deliveries(
    change_of: Callable[..., Change], named: MakeNamed, rows: MakeRows
) -> None:
    base = named("a", rows(10) + rows(10, 4.0, "wait"))
    other_rows = rows(10) + rows(10, 2.0, "wait")
    for row in other_rows[:5]:
        row["output_text"] = "something else"
    found = compare(base, named("b", other_rows))
    assert [str(one.condition) for one in found.conditions] == ["stream", "wait", "stream and wait"]
    gain = change_of(found, "streaming_gain", "p50", at=2)
    assert (gain.base, gain.other, gain.verdict) == (
        pytest.approx(4.0),
        pytest.approx(2.0),
        "worse",
    )
    parity = change_of(found, "parity", at=2)
    assert (parity.base, parity.other) == (1.0, 0.5)
    assert found.conditions[0].identical == 5
    sampled = {"options": {"temperature": 0.7}}
    again = compare(
        named("c", rows(3) + rows(3, 1, "wait"), **sampled),
        named("d", rows(3) + rows(3, 1, "wait")),
    )
    assert again.conditions[2].change("parity") is None


def test_seeds_give_the_same_and_other_intervals(
    change_of: Callable[..., Change], named: MakeNamed, rows: MakeRows
) -> None:
    random = np.random.default_rng(0)
    noisy = rows(60)
    for row in noisy:
        row["first_token_us"] += int(random.integers(-50_000, 50_000))
    runs = named("a", rows(60)), named("b", noisy)

    def interval(seed: int) -> Interval | None:
        return change_of(compare(*runs, Options(seed=seed)), "ttft_s", "p50").interval

    assert interval(1) == interval(1) != interval(2)


def test_scores_of_few_queries_have_no_interval(
    change_of: Callable[..., Change], rows: MakeRows, synthetic: ModuleType, tmp_path: Path
) -> None:
    def scored(name: str, answer: str, known: int) -> Run:
        table = synthetic.request_table(*rows(100, output_text=answer))
        queries = [(f"q{i}", "?", ["functools"] if i < known else []) for i in range(100)]
        info = synthetic.run_info(validity=VALID)
        return Run.open(synthetic.write_run(tmp_path / name, table, info=info, queries=queries))

    few = compare(scored("a", "another", 2), scored("b", "functools", 2))
    exact = change_of(few, "exact_match")
    assert (exact.n, exact.base, exact.other, exact.change) == (2, 0.0, 1.0, 1.0)
    assert (exact.interval, exact.verdict) == (None, "unknown")
    assert change_of(few, "ttft_s", "p50").interval is not None
    enough = compare(scored("c", "another", 6), scored("d", "functools", 6))
    assert change_of(enough, "exact_match").verdict == "better"


def test_intervals_are_carried_by_queries_not_by_repeats(
    change_of: Callable[..., Change], named: MakeNamed, rows: MakeRows
) -> None:
    def repeated(queries: int, factor: float = 1.0) -> list[dict[str, Any]]:
        return [
            row | {"repeat": repeat, "request_id": f"{repeat}-{row['request_id']}"}
            for repeat in range(50)
            for row in rows(queries, factor)
        ]

    few = compare(named("a", repeated(10)), named("b", repeated(10, 0.5)))
    assert [change_of(few, "ttft_s", level).n for level in ("p50", "p95", "p99")] == [500] * 3
    verdicts = [change_of(few, "ttft_s", level).verdict for level in ("p50", "p95", "p99")]
    assert verdicts == ["better", "unknown", "unknown"]
    enough = compare(named("c", repeated(59)), named("d", repeated(59, 0.5)))
    verdicts = [change_of(enough, "ttft_s", level).verdict for level in ("p50", "p95", "p99")]
    assert verdicts == ["better", "better", "unknown"]


def test_shares_are_of_what_both_runs_sent(
    change_of: Callable[..., Change], named: MakeNamed, rows: MakeRows, synthetic: ModuleType
) -> None:
    half = rows(40)
    for i in range(20, 40):
        kept = ("request_id", "query_id", "start_intended_us", "context_intended_us")
        half[i] = synthetic.failed("unsent", start_us=None, context_us=None, end_us=None) | {
            name: half[i][name] for name in kept
        }
    slos = parse_request_slos("ttft_s<1s")
    base, other = named("a", rows(40)), named("b", half)
    found = compare(base, other, Options(slos=slos))
    [stream] = summarize(other, slos).deliveries
    assert stream.slo is not None
    for metric in ("attainment", "success"):
        share = change_of(found, metric)
        assert (share.n, share.base, share.other, share.verdict) == (20, 1.0, 1.0, "none")
    assert change_of(found, "attainment").other == stream.slo.attainment
    assert found.remarks == (
        "stream: of 40 requests 0 were not sent in the base and 20 in the other run; shares of"
        " successes and of attainment are of those that both sent.",
    )
    # What was not sent is no goodput.
    assert change_of(found, "goodput").n == 40


def test_json_says_what_a_change_means(named: MakeNamed, rows: MakeRows) -> None:
    longer = [row | {"output_tokens": 6} for row in rows(30)]
    said = json.loads(comparison_json([compare(named("a", rows(30)), named("b", longer))], []))
    [condition] = said["comparisons"][0]["conditions"]
    verdicts = {(one["metric"], one["level"]): one["verdict"] for one in condition["changes"]}
    assert verdicts["ttft_s", "p50"] == "none"
    assert verdicts["tpot_s", "p50"] == "better"
    assert verdicts["output_token_rate", None] == "changed"
    assert verdicts["ttft_s", "p99"] == "unknown"
