import json
from collections.abc import Callable
from typing import Any

import pytest

from s2l.replayer.run import Run
from s2l.reports.comparison.compare import compare
from s2l.reports.comparison.gate import GateError, judge_gates, parse_gate
from s2l.reports.comparison.json import comparison_json

MakeNamed = Callable[..., Run]
MakeRows = Callable[..., list[dict[str, Any]]]


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
def test_gates(named: MakeNamed, rows: MakeRows, text: str, failed: bool, says: str) -> None:
    compared = [compare(named("a", rows(100)), named("b", rows(100, 1.2)))]
    [result] = judge_gates([parse_gate(text)], compared)
    assert (result.failed, result.says) == (failed, says)
    assert result.gate == f"{text} (b)"


def test_a_gate_on_what_cannot_be_told_fails(named: MakeNamed, rows: MakeRows) -> None:
    compared = [compare(named("a", rows(5)), named("b", rows(5)))]
    [result] = judge_gates([parse_gate("ttft_s.p95 > +5%")], compared)
    assert (result.failed, result.says) == (True, "stream: cannot be told: 5 pairs are too few")


def test_json_holds_everything(named: MakeNamed, rows: MakeRows) -> None:
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
