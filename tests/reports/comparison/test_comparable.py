from collections.abc import Callable
from typing import Any

import pytest

from s2l.replayer.run import Run, TraceRef
from s2l.reports.comparison.comparable import NotComparable
from s2l.reports.comparison.compare import Options, compare

MakeNamed = Callable[..., Run]
MakeRows = Callable[..., list[dict[str, Any]]]


def test_another_trace(named: MakeNamed, rows: MakeRows) -> None:
    trace = TraceRef(name="other", path="x", sha256="00" * 32)
    with pytest.raises(NotComparable, match=r"other traces: crawl-20251129 .*, other "):
        compare(named("a", rows(3)), named("b", rows(3), trace=trace))


def test_every_reason_is_named(named: MakeNamed, rows: MakeRows) -> None:
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


def test_when_the_pass_began_does_not_matter(named: MakeNamed, rows: MakeRows) -> None:
    moved = rows(4)
    for row in moved:
        for name in ("start_intended_us", "start_us", "context_intended_us", "context_us"):
            row[name] += 77_000_000
    assert compare(named("a", rows(4)), named("b", moved)).conditions


def test_a_stated_tolerance_lets_other_tokenizers_through(named: MakeNamed, rows: MakeRows) -> None:
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
    named: MakeNamed, rows: MakeRows, changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(NotComparable, match=why):
        compare(named("a", rows(5)), named("b", rows(5, **changes)))


def test_a_delivery_of_one_run_alone_is_left_out(named: MakeNamed, rows: MakeRows) -> None:
    found = compare(named("a", rows(6)), named("b", rows(6) + rows(6, delivery="wait")))
    assert [str(one.condition) for one in found.conditions] == ["stream"]
    assert found.remarks == ("Only the other run has wait: left out.",)
