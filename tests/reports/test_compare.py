"""Comparisons: who is paired with whom, exact changes, honest intervals, plain words, gates."""

import importlib
import json
import re
import shutil
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s2l.replayer.run import Finding, Run, TraceRef, Validity
from s2l.reports.bootstrap import Interval
from s2l.reports.comparison import resampling
from s2l.reports.comparison.alignment import align_runs
from s2l.reports.comparison.cells import rows as cells
from s2l.reports.comparison.change import Change
from s2l.reports.comparison.comparable import NotComparable
from s2l.reports.comparison.compare import Comparison, Options, compare, compare_sides
from s2l.reports.comparison.gate import GateError, judge_gates, parse_gate
from s2l.reports.comparison.html import render
from s2l.reports.comparison.json import comparison_json
from s2l.reports.comparison.markdown import markdown
from s2l.reports.comparison.resampling import (
    MeanDifference,
    PercentileChanges,
    RateChange,
    intervals,
    weights_of_resamples,
)
from s2l.reports.comparison.side import Side
from s2l.reports.comparison.words import change_text, doubts, sentences
from s2l.reports.slo import parse_request_slos

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=alert(1)>|`*_"
VALID = Validity(verdict="valid")
AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
Rows = list[dict[str, Any]]
MakeNamed = Callable[..., Run]


@pytest.fixture(autouse=True)
def fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough for what is asserted here."""
    monkeypatch.setattr(resampling, "RESAMPLES", 200)


@pytest.fixture
def named(synthetic: ModuleType, tmp_path: Path) -> MakeNamed:
    """Writes rows as the run of that name; keyword arguments change its ``run.json``."""

    def make(name: str, rows: Rows, **changes: Any) -> Run:
        info = synthetic.run_info(**({"validity": VALID} | changes))
        table = synthetic.request_table(*rows)
        return Run.open(synthetic.write_run(tmp_path / name, table, info=info))

    return make


@pytest.fixture
def rows(synthetic: ModuleType) -> Callable[..., Rows]:
    """``n`` queries a second apart; TTFT is 100, 101, 102... ms, times ``factor``."""

    def make(n: int, factor: float = 1.0, delivery: str = "stream", **changes: Any) -> Rows:
        found = []
        for i in range(n):
            start = 5_000_000 + i * 1_000_000
            ttft = round((100_000 + 1_000 * i) * factor)
            first = start + 400_000 + ttft
            found.append(
                synthetic.request(
                    request_id=f"{delivery}-{i}",
                    query_id=f"q{i}",
                    delivery=delivery,
                    start_intended_us=start,
                    start_us=start,
                    context_intended_us=start + 400_000,
                    context_us=start + 400_000,
                    first_token_us=first,
                    last_token_us=first + 200_000,
                    end_us=first + 200_000,
                )
                | changes
            )
        return found

    return make


def faults(page: Any) -> list[str]:
    """What axe finds wrong with the page."""
    page.evaluate(AXE)
    return [f"{one['id']}: {one['help']}" for one in page.evaluate("axe.run()")["violations"]]


def change_of(found: Comparison, metric: str, level: str | None = None, at: int = 0) -> Change:
    change = found.conditions[at].change(metric, level)
    assert change is not None
    return change


def verdicts(found: Comparison) -> dict[str, tuple[str, str]]:
    return {row.label: (row.verdict, row.says) for row in cells(found.conditions[0])}


def test_a_known_change_is_exact(named: MakeNamed, rows: Callable[..., Rows]) -> None:
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


def test_the_same_run_has_no_difference(named: MakeNamed, rows: Callable[..., Rows]) -> None:
    found = compare(named("a", rows(30)), named("b", rows(30)))
    assert {one.verdict for one in found.conditions[0].changes} == {"none", "unknown"}
    assert [one.change for one in found.conditions[0].changes if one.change] == []
    assert (
        sentences(found, "A", "B")[-1] == "stream: A and B give the same text for 30 of 30 queries."
    )
    assert found.remarks == ()


def test_few_queries_have_changes_and_no_intervals(
    named: MakeNamed, rows: Callable[..., Rows]
) -> None:
    found = compare(named("a", rows(5)), named("b", rows(5, 0.5)))
    p50, p95 = change_of(found, "ttft_s", "p50"), change_of(found, "ttft_s", "p95")
    assert (p50.change, p50.interval) == (pytest.approx(-0.5), None)
    assert (p95.base, p95.change) == (None, None)
    said = sentences(found, "A", "B")
    assert "no difference in TTFT, user TTFT, TPOT or end-to-end time can be told" in said[0]
    assert "(too few queries for an interval at p50)" in said[0]


def test_failures_count_and_are_in_no_latency(
    named: MakeNamed, rows: Callable[..., Rows], synthetic: ModuleType
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


def test_goodput_is_what_meets_every_objective(named: MakeNamed, rows: Callable[..., Rows]) -> None:
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
    named: MakeNamed, rows: Callable[..., Rows], longer: float, says: str
) -> None:
    other = rows(30)
    for row in other:
        row["output_tokens"] = int(row["output_tokens"] * longer)
    found = compare(named("a", rows(30)), named("b", other))
    said = verdicts(found)
    assert said["Output tokens / s"] == ("changed", says)
    assert said["Requests / s"] == ("none", "no clear difference")


def test_gain_and_parity_need_both_deliveries(named: MakeNamed, rows: Callable[..., Rows]) -> None:
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


def test_early_answers_and_repeats_are_paired_among_themselves(
    named: MakeNamed, rows: Callable[..., Rows]
) -> None:
    def mixed(factor: float) -> Rows:
        early = rows(8, factor, answer_at="25%")
        twice = [row | {"repeat": 1, "request_id": f"again-{i}"} for i, row in enumerate(rows(8))]
        return early + [row | {"repeat": 0} for row in rows(8)] + twice

    found = compare(named("a", mixed(1.0)), named("b", mixed(3.0)))
    assert [str(one.condition) for one in found.conditions] == ["stream", "stream, answered at 25%"]
    assert found.conditions[0].pairs == 16
    assert change_of(found, "ttft_s", "p50").change == 0
    assert change_of(found, "ttft_s", "p50", at=1).change == pytest.approx(2.0)


def test_a_query_asked_twice_is_paired_in_turn(synthetic: ModuleType) -> None:
    def asked(*starts: int) -> Any:
        rows = [synthetic.request(request_id=str(s), start_intended_us=s) for s in starts]
        return synthetic.request_table(*rows)

    [one] = align_runs(asked(30, 10, 20), asked(10, 20))
    assert one.base["start_intended_us"].to_pylist() == [10, 20]
    assert one.other["start_intended_us"].to_pylist() == [10, 20]
    assert (one.only_base, one.only_other) == (1, 0)


def test_rates_are_compared_each_on_its_own(named: MakeNamed, rows: Callable[..., Rows]) -> None:
    both = rows(6, rate=1.0) + rows(6, rate=2.0)
    found = compare(named("a", both), named("b", both))
    assert [str(one.condition) for one in found.conditions] == ["stream, 1/s", "stream, 2/s"]


def test_sweeps_are_compared_rate_by_rate(
    named: MakeNamed, rows: Callable[..., Rows], tmp_path: Path
) -> None:
    bad = Validity(
        verdict="invalid", findings=[Finding(check="lag", severity="invalid", text="late")]
    )
    for sweep, factor in (("a", 1.0), ("b", 2.0)):
        for rate in (1.0, 2.0):
            validity = bad if (sweep, rate) == ("b", 2.0) else VALID
            stated = {"rate_qps": rate}  # by the run alone, or by every row, too
            shown = rows(8, factor * rate, rate=rate if sweep == "a" else None)
            named(f"{sweep}/at-{rate}", shown, validity=validity, schedule=stated)
        points = [{"run": f"at-{rate}"} for rate in (1.0, 2.0)]
        (tmp_path / sweep / "sweep.json").write_text(json.dumps({"points": points}))
    sides = [Side.open(tmp_path / name) for name in ("a", "b")]
    found = compare_sides(*sides, Options())
    assert [str(one.condition) for one in found.conditions] == ["stream, 1/s", "stream, 2/s"]
    for at in (0, 1):
        assert change_of(found, "ttft_s", "p50", at=at).change == pytest.approx(1.0)
    assert doubts("B", found.other.info) == ["B is an invalid run: at-2.0: late."]
    assert "stream, 2/s: B is slower" in " ".join(sentences(found, "A", "B"))
    assert 'class="chart"' not in render([found], [])


def test_another_trace(named: MakeNamed, rows: Callable[..., Rows]) -> None:
    trace = TraceRef(name="other", path="x", sha256="00" * 32)
    with pytest.raises(NotComparable, match=r"other traces: crawl-20251129 .*, other "):
        compare(named("a", rows(3)), named("b", rows(3), trace=trace))


def test_every_reason_is_named(named: MakeNamed, rows: Callable[..., Rows]) -> None:
    late = rows(4, prompt_tokens=150)
    for row in late[1:]:
        row["start_intended_us"] += 250_000
    with pytest.raises(NotComparable) as failure:
        compare(named("a", rows(5)), named("b", late))
    said = str(failure.value)
    assert "another schedule (starts differ by up to 250.0 ms)" in said
    assert "contexts came at other times (differ by up to 250.0 ms)" in said
    assert "(4 in both, 1 only in the first, 0 only in the second)" in said
    assert "other prompt token counts (they differ by 50 %, 2 % allowed)" in said
    assert "\n" not in said


def test_when_the_pass_began_does_not_matter(named: MakeNamed, rows: Callable[..., Rows]) -> None:
    moved = rows(4)
    for row in moved:
        for name in ("start_intended_us", "start_us", "context_intended_us", "context_us"):
            row[name] += 77_000_000
    assert compare(named("a", rows(4)), named("b", moved)).conditions


def test_a_stated_tolerance_lets_other_tokenizers_through(
    named: MakeNamed, rows: Callable[..., Rows]
) -> None:
    runs = named("a", rows(4)), named("b", rows(4, prompt_tokens=150))
    assert compare(*runs, Options(token_tolerance=0.5)).conditions
    unknown = named("c", rows(4, prompt_tokens=None))
    remarks = compare(runs[0], unknown).remarks
    assert remarks == ("stream: the prompt tokens of 4 pairs are not known, so not compared.",)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"delivery": "wait"}, r"no delivery in common \(stream and wait\)"),
        ({"query_id": "x"}, r"no query in common \(q0, q1, q2, 2 more and x\)"),
        ({"rate": 2.0}, r"no offered rate in common \(none stated and 2\)"),
        ({"answer_at": "25%"}, r"no moment of the question in common \(none stated and 25%\)"),
    ],
)
def test_nothing_in_common(
    named: MakeNamed, rows: Callable[..., Rows], changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(NotComparable, match=why):
        compare(named("a", rows(5)), named("b", rows(5, **changes)))


def test_a_delivery_of_one_run_alone_is_left_out(
    named: MakeNamed, rows: Callable[..., Rows]
) -> None:
    found = compare(named("a", rows(6)), named("b", rows(6) + rows(6, delivery="wait")))
    assert [str(one.condition) for one in found.conditions] == ["stream"]
    assert found.remarks == ("Only the other run has wait: left out.",)


def test_words(named: MakeNamed, rows: Callable[..., Rows]) -> None:
    slower = rows(100, 1.2)
    for row in slower:
        row["output_text"] = "I don't know."
    found = compare(named("a", rows(100)), named("b", slower))
    assert change_of(found, "refusal").verdict == "changed"
    bare = [re.sub(r" \[[^]]*\]", "", one) for one in sentences(found, "A", "B")]
    few = " (too few queries for an interval at p99)"
    assert bare == [
        f"stream: B is slower in TTFT at p50 by 20 % and at p95 by 20 %{few}.",
        f"stream: B is slower in user TTFT at p50 by 5.4 % and at p95 by 6.5 %{few}.",
        f"stream: B is slower in end-to-end time at p50 by 8.6 % and at p95 by 9.8 %{few}.",
        f"stream: no difference in TPOT can be told{few}.",
        "stream: B is refusing more often by 100 points.",
        "stream: A and B give the same text for 0 of 100 queries.",
    ]


def test_changes_as_text() -> None:
    interval = Interval(-0.151, -0.09, 0.95)
    change = Change("ttft_s", "p95", 100, 0.2, 0.176, -0.12, interval)
    assert change_text(change) == "-12 % [-15, -9]"
    assert change_text(Change("token_f1", None, 9, 0.5, 0.531, 0.031, None)) == "+3.1 points"
    cosine = Change("semantic_similarity", None, 9, 0.5, 0.531, 0.031, Interval(-0.01, 0.1, 0.95))
    assert change_text(cosine) == "+0.031 [-0.010, 0.100]"
    assert change_text(Change("ttft_s", "p99", 9, None, None, None, None)) == "n/a"
    assert change_text(Change("ttft_s", "p50", 9, 1, 1, -0.0001, None)) == "0 %"


def test_doubts_are_said_with_their_reasons(named: MakeNamed, rows: Callable[..., Rows]) -> None:
    finding = Finding(check="lag", severity="invalid", text="schedule lag p99 is 80 ms.")
    validity = Validity(verdict="invalid", findings=[finding])
    run = named("a", rows(3), validity=validity, interrupted=True)
    expected = "A is an invalid run: it was interrupted; schedule lag p99 is 80 ms."
    assert doubts("A", run.info) == [expected]
    compared = [compare(run, named("b", rows(3)))]
    assert markdown(compared, []).index("invalid run") < markdown(compared, []).index("TTFT")
    assert doubts("B", compared[0].other.info) == []


def test_seeds_give_the_same_and_other_intervals(
    named: MakeNamed, rows: Callable[..., Rows]
) -> None:
    random = np.random.default_rng(0)
    noisy = rows(60)
    for row in noisy:
        row["first_token_us"] += int(random.integers(-50_000, 50_000))
    runs = named("a", rows(60)), named("b", noisy)

    def interval(seed: int) -> Interval | None:
        return change_of(compare(*runs, Options(seed=seed)), "ttft_s", "p50").interval

    assert interval(1) == interval(1) != interval(2)


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


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ttft_s.p95 +5%", "write it as 'ttft_s.p95 > "),
        ("nonsense > 5%", "no such metric; choose of ttft_s"),
        ("ttft_s > 5%", "no such percentile is compared; write ttft_s.p50"),
        ("ttft_s.p90 > 5%", "no such percentile is compared"),
        ("token_f1.p50 > 5pp", "write token_f1 alone"),
        ("token_f1 < -5%", "the limit of token_f1 is in pp"),
        ("ttft_s.p95 > 5", "the limit of ttft_s is in % or s or ms"),
        ("request_rate < -5ms", "is in %"),
    ],
)
def test_gates_that_cannot_be_read(text: str, why: str) -> None:
    with pytest.raises(GateError, match=why):
        parse_gate(text)


@pytest.mark.parametrize(
    ("text", "failed", "says"),
    [
        ("ttft_s.p95 > +15%", True, "stream: +20 % [20, 20]"),
        ("ttft_s.p95 > +25%", False, "stream: +20 % [20, 20]"),
        ("stream.ttft_s.p50 > 20ms", True, "stream: +29.9 ms (+20 % [20, 20])"),
        ("ttft_s.p50 < -1%", False, "stream: +20 % [20, 20]"),
        ("ttft_s.p99 > 1%", True, "stream: +20 %"),
        ("wait:ttft_s.p50 > 1%", True, "not measured in both runs"),
        ("success < -1pp", False, "stream: 0 points [0, 0]"),
        ("goodput < -1%", True, "not measured in both runs"),
    ],
)
def test_gates(
    named: MakeNamed, rows: Callable[..., Rows], text: str, failed: bool, says: str
) -> None:
    compared = [compare(named("a", rows(100)), named("b", rows(100, 1.2)))]
    [result] = judge_gates([parse_gate(text)], compared)
    assert (result.failed, result.says) == (failed, says)
    assert result.gate == f"{text} (b)"


def test_a_gate_on_what_cannot_be_told_fails(named: MakeNamed, rows: Callable[..., Rows]) -> None:
    compared = [compare(named("a", rows(5)), named("b", rows(5)))]
    [result] = judge_gates([parse_gate("ttft_s.p95 > +5%")], compared)
    assert (result.failed, result.says) == (True, "stream: cannot be told: 5 pairs are too few")


def test_json_holds_everything(named: MakeNamed, rows: Callable[..., Rows]) -> None:
    compared = [compare(named("a", rows(100)), named("b", rows(100, 0.9)))]
    found = json.loads(
        comparison_json(compared, judge_gates([parse_gate("ttft_s.p50 > 0%")], compared))
    )
    assert found["format"] == "s2l-comparison/1"
    assert [run["letter"] for run in found["runs"]] == ["A", "B"]
    [one] = found["comparisons"]
    first = one["conditions"][0]["changes"][0]
    assert (first["metric"], first["level"], first["n"]) == ("ttft_s", "p50", 100)
    assert first["change"] == pytest.approx(-0.1)
    assert found["gates"][0]["failed"] is False
    assert one["sentences"][0].startswith("stream: B is faster in TTFT at p50 by 10 % [10, 10]")


def _hostile(named: MakeNamed, rows: Callable[..., Rows], synthetic: ModuleType) -> Run:
    target = msgspec.structs.replace(synthetic.run_info().target, model=HOSTILE)
    trace = msgspec.structs.replace(synthetic.run_info().trace, name=HOSTILE)
    finding = Finding(check=HOSTILE, severity="degraded", text=HOSTILE)
    validity = Validity(verdict="degraded", findings=[finding])
    return named("h", rows(8), target=target, trace=trace, validity=validity)


def test_text_of_others_stays_text(
    named: MakeNamed, rows: Callable[..., Rows], synthetic: ModuleType
) -> None:
    compared = [compare(_hostile(named, rows, synthetic), named("b", rows(8)))]
    page = render(compared, [])
    assert HOSTILE not in page
    markup = re.sub(r"<script>.*?</script>|<style>.*?</style>", "", page, flags=re.DOTALL)
    assert "<img" not in markup
    assert "<script>window" not in page
    text = markdown(compared, [])
    assert "<script" not in text.replace("\\<script", "")
    for line in text.splitlines():
        if line.startswith("| model"):
            assert line.replace("\\|", "").count("|") == 4


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (360, "dark")])
def test_the_page_opens_from_disk(
    named: MakeNamed,
    rows: Callable[..., Rows],
    synthetic: ModuleType,
    tmp_path: Path,
    width: int,
    scheme: str,
) -> None:
    sync_api = importlib.import_module("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium is not None, "the tests need Chromium: make browser"
    file = tmp_path / "compare.html"
    base = _hostile(named, rows, synthetic)
    compared = [
        compare(base, named(name, rows(8, factor))) for name, factor in (("b", 0.9), ("c", 2))
    ]
    file.write_text(render(compared, judge_gates([parse_gate("ttft_s.p50 > 1%")], compared)))
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        said: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-charts=drawn]", timeout=20_000)
        assert said == []
        assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [file.as_uri()]
        assert page.evaluate("window.hacked") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(".chart svg.marks").count() == 1
        assert page.locator(".changes tbody tr").count() > 30
        assert page.locator("h1").inner_text() == HOSTILE
        assert faults(page) == []
        browser.close()
