import re
from collections.abc import Callable
from typing import Any

from s2l.replayer.run import Finding, Run, Validity
from s2l.reports.bootstrap import Interval
from s2l.reports.comparison.change import Change
from s2l.reports.comparison.compare import compare
from s2l.reports.comparison.markdown import markdown
from s2l.reports.comparison.words import change_text, doubts, sentences

MakeNamed = Callable[..., Run]
MakeRows = Callable[..., list[dict[str, Any]]]


def test_words(change_of: Callable[..., Change], named: MakeNamed, rows: MakeRows) -> None:
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
    large = Change("ttft_s", "p50", 9, 0.1, 14.1, 140.0, Interval(98.2, 183.5, 0.95))
    assert change_text(large) == "+14,000 % [9820, 18350]"


def test_doubts_are_said_with_their_reasons(named: MakeNamed, rows: MakeRows) -> None:
    finding = Finding(check="lag", severity="invalid", text="schedule lag p99 is 80 ms.")
    validity = Validity(verdict="invalid", findings=[finding])
    run = named("a", rows(3), validity=validity, interrupted=True)
    expected = "A is an invalid run: it was interrupted; schedule lag p99 is 80 ms."
    assert doubts("A", run.info) == [expected]
    compared = [compare(run, named("b", rows(3)))]
    assert markdown(compared, []).index("invalid run") < markdown(compared, []).index("TTFT")
    assert doubts("B", compared[0].other.info) == []
