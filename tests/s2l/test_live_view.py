"""The view of a replay: what it shows of a moment, drawn from a thread, told to machines."""

import io
import json
import math
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from s2l.replayer.progress import Progress
from s2l.replaying import live_view as live_view_module
from s2l.replaying.json_events import JsonEvents
from s2l.replaying.live_pass import RecentRates, moment
from s2l.replaying.live_text import clock_time, line, table
from s2l.replaying.live_view import live_view

NAN = math.nan

AT = Progress(
    stage="replaying",
    pass_name="stream",
    elapsed_s=2.0,
    planned=200,
    in_flight=10,
    succeeded=118,
    failed={"timeout": 2},
    due=130,
    lag_p99_s=0.0004,
    ttft_s={"wait": (0.9, 1.2), "stream": (0.052, 0.0611)},
    eta_s=3.0,
)


def test_a_moment_of_a_pass() -> None:
    now = moment(AT, RecentRates())
    assert (now.name, now.planned, now.ended, now.in_flight) == ("stream", 200, 120, 10)
    assert (now.offered_qps, now.achieved_qps, now.left_s) == (65.0, 60.0, 3.0)
    assert (now.ttft_p50_s, now.ttft_p95_s, now.lag_p99_s) == (0.052, 0.0611, 0.0004)
    assert line(now) == (
        "stream: 120/200 · 60.0 of 65.0 offered requests/s · 10 in flight · "
        "TTFT p50 52.0 ms, p95 61.1 ms · lag p99 0.40 ms · 2 failed (timeout 2) · 3 s left"
    )


def test_percentiles_need_their_samples() -> None:
    few = replace(AT, succeeded=19, failed={}, ttft_s={"stream": (0.1, 0.2)})
    now = moment(few, RecentRates())
    assert (now.ttft_p50_s, now.ttft_p95_s, now.lag_p99_s) == (0.1, None, None)
    none = replace(AT, succeeded=0, failed={}, ttft_s={"stream": (NAN, NAN)}, lag_p99_s=NAN)
    now = moment(none, RecentRates())
    assert (now.ttft_p50_s, now.ttft_p95_s, now.lag_p99_s) == (None, None, None)


def test_rates_are_those_of_the_last_seconds() -> None:
    rates = RecentRates()
    assert rates.of(0.0, 0, 0) is None
    ended = 0
    for second in range(1, 31):
        ended += 20 if second > 20 else 5
        found = rates.of(second, 10 * second, ended)
    assert found == (10.0, 20.0)


def test_once_all_were_offered_the_offered_rate_is_zero() -> None:
    rates = RecentRates()
    rates.of(10.0, 3, 3)
    rates.of(11.0, 3, 3)
    assert rates.of(21.0, 3, 3) == (0.0, 0.0)


def test_time_left_beyond_the_schedule_is_at_the_pace_so_far() -> None:
    assert moment(replace(AT, eta_s=0.0, elapsed_s=30.0), RecentRates()).left_s == 20.0
    assert moment(replace(AT, succeeded=0, failed={}, eta_s=0.0), RecentRates()).left_s is None


def test_a_closed_loop_offers_nothing() -> None:
    now = moment(replace(AT, eta_s=None), RecentRates())
    assert (now.offered_qps, now.achieved_qps) == (None, 60.0)
    assert " · 60.0 requests/s · " in line(now)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "n/a"), (7.6, "8 s"), (59.4, "59 s"), (59.6, "1:00"), (125, "2:05"), (3725, "1:02:05")],
)
def test_time_left(seconds: float | None, text: str) -> None:
    assert clock_time(seconds) == text


def test_the_table_has_a_row_for_each_pass() -> None:
    console = Console(width=130, file=io.StringIO(), force_terminal=True, no_color=True)
    now = moment(AT, RecentRates())
    console.print(table([replace(now, name="wait", ended=200, over=True, left_s=None), now]))
    assert isinstance(console.file, io.StringIO)
    drawn = console.file.getvalue()
    for part in ("wait", "200/200", "stream", "120/200", "61.1 ms", "0.40 ms", "timeout 2", "3 s"):
        assert part in drawn


class Replay:
    """A replay whose moments a test sets; it counts who asks."""

    def __init__(self) -> None:
        self.at = Progress("warming up", "", 0.0, 0, 0, 0)
        self.asked_by: list[str] = []
        self.asked = threading.Condition()

    def progress(self) -> Progress:
        with self.asked:
            self.asked_by.append(threading.current_thread().name)
            self.asked.notify_all()
            return self.at

    def wait_for(self, n: int) -> None:
        with self.asked:
            assert self.asked.wait_for(lambda: len(self.asked_by) >= n, 10)


def test_events_are_one_object_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_view_module, "TELL_S", 0.01)
    file = tmp_path / "events.jsonl"
    events = JsonEvents(str(file))
    replay = Replay()
    before_s = sys.getswitchinterval()
    events.started(run="runs/x")
    with live_view(replay.progress, events) as view:
        assert sys.getswitchinterval() <= 0.0005
        replay.wait_for(2)
        replay.at = replace(AT, pass_name="wait", planned=120)
        replay.wait_for(len(replay.asked_by) + 2)
        view.look()
        replay.at = AT
    assert sys.getswitchinterval() == pytest.approx(before_s, abs=2e-6)  # kept in whole µs
    events.finding("saturated", "degraded", "slow")
    events.finished(verdict="degraded")
    events.close()
    told: list[dict[str, Any]] = [json.loads(text) for text in file.read_text().splitlines()]
    assert [(one["event"], one.get("name"), one.get("over")) for one in told] == [
        ("started", None, None),
        ("pass", "wait", None),
        ("progress", "wait", False),
        ("progress", "wait", True),
        ("pass", "stream", None),
        ("progress", "stream", False),
        ("progress", "stream", True),
        ("finding", None, None),
        ("finished", None, None),
    ]
    assert all(event["time_utc"].endswith("+00:00") for event in told)
    assert (told[2]["ended"], told[2]["failed"]) == (120, {"timeout": 2})


def test_drawing_is_done_by_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal it draws by itself, and the last picture stays."""
    screen = Console(file=io.StringIO(), force_terminal=True, width=130)
    monkeypatch.setattr(live_view_module, "console", screen)
    monkeypatch.setattr(live_view_module, "DRAW_S", 0.01)
    replay = Replay()
    replay.at = AT
    with live_view(replay.progress):
        replay.wait_for(3)
    assert set(replay.asked_by) == {"live-view"}
    assert isinstance(screen.file, io.StringIO)
    assert "120/200" in screen.file.getvalue()


def test_a_reader_that_is_gone_ends_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full on this system")
    events = JsonEvents(str(full))
    events.started(run="x")
    events.started(run="y")
    said = capfd.readouterr().err
    assert said.count("no more events are written, the replay goes on") == 1
