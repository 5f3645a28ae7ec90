import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from s2l.replayer.run import Finding, Run, Validity
from s2l.reports.comparison.alignment import align_runs
from s2l.reports.comparison.change import Change
from s2l.reports.comparison.compare import Options, compare, compare_sides
from s2l.reports.comparison.html import render
from s2l.reports.comparison.side import Side
from s2l.reports.comparison.words import doubts, sentences

MakeNamed = Callable[..., Run]
MakeRows = Callable[..., list[dict[str, Any]]]
VALID = Validity(verdict="valid")


def test_early_answers_and_repeats_are_paired_among_themselves(
    change_of: Callable[..., Change], named: MakeNamed, rows: MakeRows
) -> None:
    def mixed(factor: float) -> list[dict[str, Any]]:
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


def test_rates_are_compared_each_on_its_own(named: MakeNamed, rows: MakeRows) -> None:
    both = rows(6, rate=1.0) + rows(6, rate=2.0)
    found = compare(named("a", both), named("b", both))
    assert [str(one.condition) for one in found.conditions] == ["stream, 1/s", "stream, 2/s"]


def test_sweeps_are_compared_rate_by_rate(
    change_of: Callable[..., Change], named: MakeNamed, rows: MakeRows, tmp_path: Path
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
