"""Objectives are read exactly, and a wrong one is named with its place."""

import pytest

from s2l.reports.slo import (
    Slo,
    SloError,
    parse_percentile_slos,
    parse_request_slos,
    parse_slos,
)


@pytest.mark.parametrize(
    ("text", "slos"),
    [
        ("ttft_s<500ms", (Slo("ttft_s", None, 0.5),)),
        ("ttft_s:p95<500ms", (Slo("ttft_s", 95.0, 0.5),)),
        (
            "ttft_s:p95<500ms,tpot_s:p99<50ms",
            (Slo("ttft_s", 95.0, 0.5), Slo("tpot_s", 99.0, 0.05)),
        ),
        (" ttft_s : p99.9 < 1.5 s , e2e_s<2s", (Slo("ttft_s", 99.9, 1.5), Slo("e2e_s", None, 2))),
        ("ttft_user_s:p50<250us", (Slo("ttft_user_s", 50.0, 250e-6),)),
        ("ttft_s:p50<1s,ttft_s:p99<2s", (Slo("ttft_s", 50.0, 1), Slo("ttft_s", 99.0, 2))),
    ],
)
def test_what_is_read(text: str, slos: tuple[Slo, ...]) -> None:
    assert parse_slos(text) == slos
    assert parse_slos(",".join(map(str, slos))) == slos


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "character 1: expected an objective such as"),
        ("ttft_s<500ms,", "character 14: expected an objective"),
        ("ttft<500ms", "'ttft<500ms', character 1: no such metric; choose of ttft_s, "),
        ("tpot_s<1s,ttft<500ms", "'ttft<500ms', character 11: no such metric"),
        ("ttft_s", "character 7: expected '<'"),
        ("ttft_s>1s", "character 7: expected '<'"),
        ("ttft_s:95<1s", "character 7: expected '<'"),
        ("ttft_s:p100<1s", "character 9: a percentile is above p0 and below p100"),
        ("ttft_s:p0<1s", "character 9: a percentile"),
        ("ttft_s:p9.9.9<1s", "character 9: a percentile"),
        ("ttft_s<500", "character 11: expected a unit: s, ms or us"),
        ("ttft_s<5min", "character 9: expected a unit"),
        ("ttft_s<", "character 8: expected a limit above 0 with its unit"),
        ("ttft_s<=1s", "character 8: expected a limit"),
        ("ttft_s<-1s", "character 8: expected a limit"),
        ("ttft_s<0ms", "character 8: expected a limit"),
        ("ttft_s<nan s", "character 8: expected a limit"),
        ("ttft_s<1s 2s", "character 8: expected a limit"),
        ("ttft_s<1s,ttft_s<2s", "character 11: this objective has a limit already"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(SloError) as caught:
        parse_slos(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_percentiles_where_they_are_needed() -> None:
    assert parse_percentile_slos("ttft_s:p95<1s") == (Slo("ttft_s", 95.0, 1.0),)
    assert parse_request_slos("ttft_s<1s") == (Slo("ttft_s", None, 1.0),)
    with pytest.raises(SloError, match="'ttft_s<1s' names no percentile"):
        parse_percentile_slos("tpot_s:p50<1s,ttft_s<1s")
    with pytest.raises(SloError, match="'ttft_s:p95<1s' is of a percentile"):
        parse_request_slos("ttft_s:p95<1s")
