import io
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from rich.console import Console

from s2l.replayer.run import Run
from s2l.reports.headline import headline
from s2l.reports.slo import parse_slos
from s2l.reports.summary import summarize, summary_json
from s2l.reports.tables import parity_text, throughput_figures
from s2l.reports.terminal import print_summary

MakeRun = Callable[..., Run]


def printed(run: Run) -> str:
    written = io.StringIO()
    print_summary(summarize(run), Console(file=written, width=100))
    return written.getvalue()


def test_both_deliveries(realistic: Run) -> None:
    summary = summarize(realistic)
    stream, wait = summary.deliveries
    assert (stream.delivery, wait.delivery) == ("stream", "wait")
    assert (wait.outcomes.planned, wait.outcomes.succeeded) == (12, 11)
    assert wait.outcomes.failed == {"timeout": 1}
    assert wait.latencies.ttft_s.n == 11
    assert stream.latencies.ttft_s.p50 == pytest.approx(0.2, rel=0.2)
    assert stream.throughput.prefill_hidden.p50 == pytest.approx(608 / 700)
    assert stream.throughput.output_tokens == 12 * 14
    assert stream.latencies.itl_s.n == 12 * 13
    assert stream.latencies.chunk_lag_s.n == 12 * 7
    assert (stream.quality.scored, wait.quality.scored) == (12, 11)
    assert summary.gain is not None
    assert (summary.gain.pairs, summary.gain.unpaired) == (11, 1)
    assert summary.parity is not None
    assert (summary.parity.identical, summary.parity.pairs) == (10, 11)


def test_the_same_run_gives_the_same_bytes(realistic: Run) -> None:
    found = summary_json(summarize(realistic))
    assert found == summary_json(summarize(realistic))
    decoded = msgspec.json.decode(found)
    assert decoded["format"] == "s2l-summary/1"
    assert decoded["deliveries"][0]["latencies"]["ttft_s"]["p99"] is None


def test_verdict_comes_first_on_the_terminal(realistic: Run) -> None:
    lines = printed(realistic).splitlines()
    assert lines[0].strip() == "DEGRADED"
    assert "1 of 24 requests failed" in lines[1]
    assert lines[2].startswith("The client's own error was not measured")
    assert lines[4].startswith("First token 5.2x sooner (95 % interval 3.5 to 6.6), at the median")
    assert any("1 timeout" in line for line in lines)


def test_all_failed(synthetic: ModuleType, make_run: MakeRun) -> None:
    sides = ("stream", "wait")
    rows = [synthetic.failed("refused", request_id=s, delivery=s, end_us=None) for s in sides]
    run = make_run(*rows)
    summary = summarize(run)
    assert [one.outcomes.failed for one in summary.deliveries] == [{"refused": 1}] * 2
    assert summary.deliveries[0].throughput.request_rate is None
    assert summary.deliveries[0].quality.exact_match is None
    assert summary.parity is not None
    assert summary.parity.share is None
    assert str(headline(summary)) == "No streaming gain: no query succeeded in both deliveries."
    assert "1 refused" in printed(run)


def test_one_query(synthetic: ModuleType, make_run: MakeRun) -> None:
    wait = synthetic.request(request_id="w", delivery="wait", first_token_us=2_000_000)
    run = make_run(synthetic.request(), wait)
    found = str(headline(summarize(run)))
    assert found.startswith("First token 5.0x sooner for the only paired query.")
    assert "n/a" in printed(run)


def test_one_delivery(synthetic: ModuleType, make_run: MakeRun) -> None:
    rows = [synthetic.request(request_id=f"s{i}", query_id=f"q{i}") for i in range(2)]
    run = make_run(*rows)
    summary = summarize(run)
    assert summary.gain is None
    assert summary.parity is None
    assert summary.delivery("wait") is None
    assert str(headline(summary)).startswith("First token after 200 ms at the median of 2 requests")
    assert "wait" not in printed(run).split("TTFT")[1]


def test_interrupted(synthetic: ModuleType, make_run: MakeRun) -> None:
    never = {"start_us": None, "context_us": None, "end_us": None}
    unsent = synthetic.failed("unsent", request_id="w", delivery="wait", **never)
    run = make_run(synthetic.request(), unsent, info=synthetic.run_info(interrupted=True))
    wait = summarize(run).delivery("wait")
    assert wait is not None
    assert (wait.outcomes.planned, wait.outcomes.sent, wait.outcomes.unsent) == (1, 0, 1)
    assert wait.outcomes.failed == {}
    assert wait.latencies.schedule_lag_s.n == 0
    assert "Interrupted" in printed(run)


def test_nothing_recorded(make_run: MakeRun) -> None:
    run = make_run()
    assert str(headline(summarize(run))) == "No request was recorded."
    assert "No request was recorded." in printed(run)


def test_waiting_can_be_sooner(synthetic: ModuleType, make_run: MakeRun) -> None:
    rows = []
    for i in range(6):
        ids = {"query_id": f"q{i}"}
        rows.append(synthetic.request(request_id=f"s{i}", first_token_us=1_600_000, **ids))
        rows.append(synthetic.request(request_id=f"w{i}", delivery="wait", **ids))
    found = str(headline(summarize(make_run(*rows))))
    assert found == (
        "First token 3.0x later (95 % interval 3.0 to 3.0), at the median of 6 paired queries."
    )


def _headline(synthetic: ModuleType, make_run: MakeRun, waits_us: list[int]) -> str:
    """Of queries streamed in 200 ms and waited for so long."""
    rows = []
    for i, wait_us in enumerate(waits_us):
        ids = {"query_id": f"q{i}"}
        rows.append(synthetic.request(request_id=f"s{i}", **ids))
        wait = {"delivery": "wait", "first_token_us": 1_000_000 + wait_us}
        rows.append(synthetic.request(request_id=f"w{i}", **ids, **wait))
    return str(headline(summarize(make_run(*rows))))


def test_an_interval_around_one_is_no_difference(synthetic: ModuleType, make_run: MakeRun) -> None:
    waits_us = [180_000, 190_000, 198_000, 198_000, 210_000, 220_000]
    assert _headline(synthetic, make_run, waits_us) == (
        "No difference in the time to first token can be told: wait / stream 0.99x at the median"
        " of 6 paired queries (95 % interval 0.92 to 1.07, which includes 1)."
    )


@pytest.mark.parametrize("wait_us", [200_800, 199_200])
def test_a_ratio_that_rounds_to_one_is_as_soon(
    synthetic: ModuleType, make_run: MakeRun, wait_us: int
) -> None:
    assert _headline(synthetic, make_run, [wait_us] * 6) == (
        "First token as soon either way (95 % interval 1.00 to 1.00), at the median of 6 paired"
        " queries."
    )


def test_one_query_can_be_as_soon(synthetic: ModuleType, make_run: MakeRun) -> None:
    found = _headline(synthetic, make_run, [200_000])
    assert found.startswith("First token as soon either way for the only paired query.")


def test_sampled_answers_have_no_parity(synthetic: ModuleType, make_run: MakeRun) -> None:
    rows = [synthetic.request(), synthetic.request(request_id="w", delivery="wait")]
    info = synthetic.run_info(options={"temperature": 0.7})
    text = parity_text(summarize(make_run(*rows, info=info)))
    assert text == "Parity: n/a, as answers were sampled at temperature 0.7."


def test_calibration_is_printed(synthetic: ModuleType, tmp_path: Path) -> None:
    text = printed(Run.open(synthetic.complete(tmp_path / "run")))
    assert "send lag p99 0.41 ms, TTFT error p50 0.12 ms, TTFT error p99 0.37 ms" in text.replace(
        "\n", " "
    )


def test_figures_are_of_requests_asked_at_the_end(synthetic: ModuleType, tmp_path: Path) -> None:
    summary = summarize(Run.open(synthetic.complete(tmp_path / "run")))
    stream, wait = summary.deliveries
    assert (stream.outcomes.planned, stream.latencies.ttft_s.n) == (12, 12)
    assert wait.outcomes.failed == {"server_error": 1, "timeout": 1}
    assert stream.workload.chunks_per_query.max == 8
    assert stream.latencies.itl_s.n == 12 * 13
    assert stream.throughput.discarded_tokens == 12 * 8
    assert summary.gain is not None
    assert summary.gain.pairs == 10
    points = [(one.delivery, one.answer_at, one.sent, one.succeeded) for one in summary.curve]
    assert points[:4] == [("stream", moment, 12, 12) for moment in ("25%", "50%", "75%", "100%")]
    assert points[4:] == [("wait", moment, 12, 10) for moment in ("25%", "50%", "75%", "100%")]
    waits = [one.ttft_user_s.p50 for one in summary.curve[:4]]
    assert waits == sorted(waits)
    assert summary.curve[3].ttft_s == stream.latencies.ttft_s


def test_objectives_of_the_run_and_of_the_reader(synthetic: ModuleType, make_run: MakeRun) -> None:
    late = {"first_token_us": 1_600_000, "last_token_us": 1_900_000}
    slow = synthetic.request(request_id="s1", query_id="q1", **late)
    run = make_run(
        synthetic.request(),
        slow,
        synthetic.failed("timeout", request_id="s2", query_id="q2"),
        info=synthetic.run_info(options={"slo": "ttft_s<500ms"}),
    )
    stated = summarize(run).deliveries[0].slo
    assert stated is not None
    assert (stated.met, stated.sent, stated.attainment) == (1, 3, 1 / 3)
    assert stated.goodput == pytest.approx(1 / 1.5)
    asked = summarize(run, parse_slos("ttft_s<1s,tpot_s<50ms")).deliveries[0].slo
    assert asked is not None
    assert asked.met == 0
    assert summarize(run, ()).deliveries[0].slo is None


def test_objectives_at_a_percentile_are_of_the_whole(
    synthetic: ModuleType, make_run: MakeRun
) -> None:
    rows = [synthetic.request(request_id=f"s{i}", query_id=f"q{i}") for i in range(20)]
    rows[3] = synthetic.failed("timeout", request_id="s3", query_id="q3")
    slos = parse_slos("ttft_s:p50<500ms,ttft_s:p95<500ms,ttft_s:p99<500ms")
    summary = summarize(make_run(*rows), slos)
    cells = {row.label: row.cells for row in throughput_figures(summary) if "<" in row.label}
    assert cells == {
        "ttft_s:p50<500ms": ("met: 200 ms",),
        "ttft_s:p95<500ms": ("missed: a failure",),
        "ttft_s:p99<500ms": ("n/a",),
    }
    assert summary.deliveries[0].slo is not None
    assert summary.deliveries[0].slo.met == 19


def test_two_counts_of_tokens_are_reported(synthetic: ModuleType, make_run: MakeRun) -> None:
    run = make_run(synthetic.request(output_tokens=4))
    assert summarize(run).deliveries[0].throughput.token_mismatch == 0.25
    assert "stream: 4 by usage, 3 by events" in printed(run)
    assert summarize(run).deliveries[0].throughput.event_tokens == 3
