"""The verdict on a run, check by check, at the limits that METRICS.md sets."""

from dataclasses import replace

import pytest

from s2l.replayer.circumstances import Circumstances
from s2l.replayer.monitor import ClientSample
from s2l.replayer.record import ChunkSend, QuerySend, RequestRecord
from s2l.replayer.run import Finding, Validity
from s2l.replayer.tally import ClientTally, PassTally, count
from s2l.replayer.validity import judge
from s2l.serving_adapter.base import Usage

START_US, DUE_US = 1_000_000, 2_000_000
APART = Circumstances(caches_separate=True)


def _record(
    number: int = 0,
    *,
    delivery: str = "stream",
    start_lag_us: int = 0,
    chunk_lag_us: int = 0,
    error_type: str | None = None,
    usage: Usage | None = None,
    ttft_us: int = 100_000,
    end_us: int | None = None,
) -> RequestRecord:
    start = START_US + number * 1_000_000
    due = start + DUE_US - START_US
    chunk = ChunkSend(0, "append", DUE_US - START_US, DUE_US - START_US, 10)
    return RequestRecord(
        request_id=f"{delivery}-{number}",
        query=QuerySend(f"q{number}", DUE_US - START_US, (chunk,)),
        delivery=delivery,
        number=number,
        rate=1.0,
        start_intended_us=start,
        start_us=None if error_type == "unsent" else start + start_lag_us,
        handed_us=[due + chunk_lag_us],
        sent_us=[due + chunk_lag_us],
        ask_us=due,
        context_us=due,
        token_us=[due + ttft_us],
        end_us=end_us or due + ttft_us,
        usage=usage or Usage(100, 0, 5),
        error_type=error_type,
    )


def _tallies(records: list[RequestRecord]) -> list[PassTally]:
    tallies: dict[str, PassTally] = {}
    for record in records:
        tally = tallies.setdefault(record.delivery, PassTally(record.delivery, record.delivery))
        tally.planned += 1
        if record.sent:
            tally.add(record)
    return list(tallies.values())


def _client(samples: list[ClientSample]) -> ClientTally:
    tally = ClientTally()
    for sample in samples:
        tally.add(sample)
    return tally


def _verdict(
    records: list[RequestRecord],
    samples: list[ClientSample] | None = None,
    known: Circumstances = APART,
) -> Validity:
    return judge(_tallies(records), [_client(samples or [])], known)


def _checks(validity: Validity) -> dict[str, str]:
    return {finding.check: finding.severity for finding in validity.findings}


def test_a_clean_run_is_valid() -> None:
    records = [_record(n, delivery=d) for d in ("wait", "stream") for n in range(10)]
    assert _verdict(records) == Validity(verdict="valid", findings=[])


@pytest.mark.parametrize(
    ("lag_us", "severity"), [(4_900, None), (5_100, "degraded"), (50_100, "invalid")]
)
def test_lag_limits(lag_us: int, severity: str | None) -> None:
    late_start = _verdict([_record(n, start_lag_us=lag_us) for n in range(10)])
    late_chunk = _verdict([_record(n, chunk_lag_us=lag_us) for n in range(10)])
    assert _checks(late_start).get("schedule_lag_s") == severity
    assert _checks(late_chunk).get("chunk_lag_s") == severity
    assert late_start.verdict == (severity or "valid")


def test_slow_answers_allow_for_lag_of_one_percent() -> None:
    slow = [_record(n, start_lag_us=9_000, ttft_us=1_000_000) for n in range(10)]
    assert _verdict(slow).verdict == "valid"
    for record in slow:
        record.token_us = [record.context_intended_us + 800_000]
    assert _verdict(slow).verdict == "degraded"


def test_long_answers_of_one_delivery_allow_for_no_lag_in_the_other() -> None:
    waiting = [_record(n, delivery="wait", ttft_us=60_000_000) for n in range(10)]
    streamed = [_record(n, chunk_lag_us=290_000, ttft_us=50_000) for n in range(10)]
    validity = _verdict([*waiting, *streamed])
    assert _checks(validity) == {"chunk_lag_s": "invalid"}
    assert validity.findings[0].text == "stream: chunk_lag_s p99 is 290.0 ms (limit 50.0 ms)"


@pytest.mark.parametrize(("failed", "severity"), [(1, None), (2, "degraded"), (11, "invalid")])
def test_failure_limits(failed: int, severity: str | None) -> None:
    records = [_record(n, error_type="timeout" if n < failed else None) for n in range(100)]
    assert _checks(_verdict(records)).get("failures") == severity


def test_failures_are_a_share_of_their_own_pass() -> None:
    records = [
        _record(n, delivery=d, error_type="timeout" if d == "stream" and n < 19 else None)
        for d in ("wait", "stream")
        for n in range(100)
    ]
    validity = _verdict(records)
    assert _checks(validity) == {"failures": "invalid"}
    assert validity.findings[0].text == "stream: 19 of 100 requests failed (19 timeout)"


def test_requests_that_were_sent_again_are_said() -> None:
    """A server that drops requests can look like one that closed an idle connection."""
    records = [_record(n) for n in range(100)]
    records[0].resends = 1
    assert _checks(_verdict(records)) == {"resent": "note"}
    records[1].resends = 1
    validity = _verdict(records)
    assert _checks(validity) == {"resent": "degraded"}
    assert validity.findings[0].text.startswith("stream: 2 of 100 requests found a kept connection")


def test_unsent_requests_are_said() -> None:
    validity = _verdict([_record(0), _record(1, error_type="unsent")])
    assert _checks(validity) == {"unsent": "degraded"}
    assert _verdict([_record(0, error_type="unsent")]).verdict == "invalid"


def test_a_busy_client_is_said() -> None:
    lag = [ClientSample("wait", None, n * 50_000, 6_000, 0.0, 0) for n in range(10)]
    assert _checks(_verdict([_record()], lag)) == {"event_loop": "degraded"}
    busy = [ClientSample("wait", None, n * 50_000, 0, n * 0.045, 0) for n in range(10)]
    assert _checks(_verdict([_record()], busy)) == {"client_cpu": "degraded"}
    idle = [ClientSample("wait", None, n * 50_000, 0, n * 0.035, 0) for n in range(10)]
    assert _checks(_verdict([_record()], idle)) == {}


def test_a_warm_cache_is_detected() -> None:
    warm = _record(delivery="wait", usage=Usage(100, 32, 5))
    streamed = _record(delivery="stream", usage=Usage(100, 90, 5))
    validity = _verdict([warm, streamed])
    assert _checks(validity) == {"warm_cache": "invalid"}
    assert "found 32 tokens cached" in validity.findings[0].text


def test_what_a_request_prefilled_itself_is_no_warm_cache() -> None:
    """All of its context was sent at once, and the server began before it had read the question."""
    own = _record(delivery="wait", usage=Usage(100, 90, 5, found_tokens=0))
    assert _checks(_verdict([own])) == {}
    others = _record(delivery="wait", usage=Usage(100, 90, 5, found_tokens=16))
    assert _checks(_verdict([others])) == {"warm_cache": "invalid"}
    unknown = _record(delivery="wait", usage=Usage(100, 90, 5))
    assert _checks(_verdict([unknown])) == {"warm_cache": "invalid"}


def test_what_the_protocol_lets_wait_is_no_lag_of_the_client() -> None:
    record = _record()
    record.sent_us = [(record.handed_us[0] or 0) + 400_000]
    record.context_us = (record.ask_us or 0) + 400_000
    assert _checks(_verdict([record])) == {}


def test_caches_that_cannot_be_told_apart_are_said() -> None:
    unknown = [_record(delivery=d, usage=Usage(100, None, 5)) for d in ("wait", "stream")]
    shared = Circumstances(caches_separate=False)
    told = [_record(delivery="wait"), _record(usage=Usage(100, 90, 5))]
    assert _checks(_verdict(told, known=shared)) == {"warm_cache": "degraded"}
    assert _checks(_verdict(unknown, known=shared)) == {"warm_cache": "degraded"}
    assert _checks(_verdict(unknown[:1], known=shared)) == {}


def test_prompts_that_differ_between_deliveries_make_a_run_invalid() -> None:
    records = [_record(delivery="wait"), _record(delivery="stream", usage=Usage(101, 0, 5))]
    assert _checks(_verdict(records)) == {"pairing": "invalid"}


def test_a_saturated_server_is_named() -> None:
    """20 requests due a second apart, done 1.2 s apart; the first is due 1 s after it starts."""
    records = [_record(n, end_us=DUE_US + 500_000 + n * 1_200_000) for n in range(20)]
    validity = _verdict(records, known=replace(APART, unloaded_s=0.5))
    assert _checks(validity) == {"saturated": "degraded"}
    # 20 in 1 + 22.8 + 0.5 s; the server could have done them in 1 + 19 + 0.5 s.
    assert "0.823 requests/s completed of 0.976 offered" in validity.findings[0].text
    assert _checks(_verdict(records)) == {"saturated": "degraded"}


def test_slow_answers_alone_are_no_saturation() -> None:
    steady = [_record(n, end_us=DUE_US + n * 1_000_000 + 3_000_000) for n in range(20)]
    assert _verdict(steady, known=replace(APART, unloaded_s=2.5)).verdict == "valid"
    assert _verdict(steady).verdict == "valid"


def test_counts_add_up() -> None:
    kinds = [None, "timeout", "timeout", "refused", "unsent"]
    counts = count(_tallies([_record(n, error_type=kind) for n, kind in enumerate(kinds)]))
    assert (counts.planned, counts.sent, counts.succeeded, counts.unsent) == (5, 4, 1, 1)
    assert counts.failed == {"refused": 1, "timeout": 2}


def test_a_request_that_is_in_no_table_is_said() -> None:
    (tally,) = _tallies([_record(0), _record(1), _record(2, error_type="unsent")])
    tally.left_out = 1
    assert judge([tally], [], APART).verdict == "degraded"
    tally.planned += 1  # one that was started, and that nobody has handed on
    checks = _checks(judge([tally], [], APART))
    assert checks == {"counts": "invalid", "unsent": "degraded"}


def test_time_between_passes_is_no_use_of_the_client() -> None:
    """Of each of two passes 1 s at a tenth of a core; the encoding between them takes all of it."""
    first = [ClientSample("stream", "25%", n * 500_000, 0, n * 0.05, 0) for n in range(3)]
    second = [
        ClientSample("stream", "50%", 2_000_000 + n * 500_000, 0, 1.1 + n * 0.05, 0)
        for n in range(3)
    ]
    client = _client([*first, *second])
    assert client.cpu_share == pytest.approx(0.1)


def test_clients_that_gave_up_as_asked_are_no_failures() -> None:
    records = [_record(n, error_type="cancelled" if n < 5 else None) for n in range(10)]
    assert _verdict(records).verdict == "valid"
    assert count(_tallies(records)).failed == {"cancelled": 5}


def test_no_free_file_is_said() -> None:
    record = _record(error_type="connect")
    record.error = "cannot connect: Too many open files"
    records = [record, *(_record(n) for n in range(1, 200))]
    assert _checks(_verdict(records)) == {"open_files": "invalid"}


def test_waiting_for_a_turn_is_no_lag_of_the_client_but_is_said() -> None:
    records = [_record(n, start_lag_us=900_000) for n in range(10)]
    for record in records:
        record.eligible_us = record.start_intended_us + 900_000
    assert _checks(_verdict(records)) == {"held_back": "degraded"}


@pytest.mark.parametrize(
    ("known", "check", "severity"),
    [
        (replace(APART, settings_changed=("model",)), "settings", "invalid"),
        (replace(APART, token_mismatch=0.03), "token_counts", "note"),
        (replace(APART, token_mismatch=0.01), None, None),
        (replace(APART, calibration={"lag_p99_ms": 6.0}), "calibration", "degraded"),
        (replace(APART, calibration={"ttft_error_p99_ms": 0.5}), None, None),
        (
            replace(APART, remarks=(Finding(check="disk", severity="invalid", text="full"),)),
            "disk",
            "invalid",
        ),
    ],
)
def test_what_is_known_beside_the_requests(
    known: Circumstances, check: str | None, severity: str | None
) -> None:
    found = _checks(_verdict([_record(n) for n in range(10)], known=known))
    assert found == ({} if check is None else {check: severity})


def test_a_closed_loop_offers_no_rate_to_fall_short_of() -> None:
    records = [_record(n, end_us=DUE_US + 500_000 + n * 1_200_000) for n in range(20)]
    assert _verdict(records, known=replace(APART, closed_loop=True)).verdict == "valid"
