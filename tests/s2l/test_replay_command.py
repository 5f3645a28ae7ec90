"""``s2l replay`` as a user types it, against ``s2l mock``: plans, events, limits, interrupts."""

import json
import math
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from s2l.cli import run as s2l_here
from s2l.exits import INTERRUPTED, USAGE

FAST = ("--time-scale", "0.02", "--warmup", "0", "--no-calibrate")


def events_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def options_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "run.json").read_text())["options"]
    return found


@pytest.fixture
def trace() -> Path:
    """The shipped crawl: forty queries."""
    return Path(__file__).parents[2] / "datasets" / "demo-crawl"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--qps", "1", "--arrivals", "ramp:1..5/3s"), "states its own rates; leave --qps out"),
        (("--arrivals", "gamma"), "--target needs --qps, --concurrency or --arrivals recorded"),
        (("--qps", "1", "--arrivals", "ramp:1-5"), "'1-5' is neither a ramp nor a step"),
        (("--qps", "1", "--arrivals", "file:none.txt"), "none.txt: No such file"),
        (("--qps", "1", "--burstiness", "2"), "burstiness is for gamma, ramp, step only"),
        (("--qps", "1", "--arrivals", "gamma", "--burstiness", "0"), "'0' is not a number above 0"),
        (("--qps", "1", "--concurrency", "4"), "a closed loop and has no rate"),
        (("--concurrency", "4", "--arrivals", "gamma"), "a closed loop; leave out --arrivals"),
        (("--concurrency", "4", "--max-concurrency", "4"), "give one"),
        (("--qps", "1", "--duration", "soon"), "'soon' is not a duration above 0"),
        (("--qps", "1", "--duration", "0s"), "'0s' is not a duration above 0"),
        (("--qps", "1", "--answer-at", "half"), "'half' is no moment to answer at"),
        (("--qps", "1", "--answer-at", "50%", "--deadline", "2s"), "give one of them"),
        (("--qps", "1", "--slo", "ttft_s<500"), "expected a unit: s, ms or us"),
        (("--qps", "1", "--slo", "ttft_s:p95<1s"), "is of a percentile"),
        (("--qps", "1", "--retries", "-1"), "--retries"),
        (("--qps", "1", "--cancel-fraction", "2"), "--cancel-fraction"),
        (("--qps", "1", "--adapter", "carrier"), "'carrier' is not one of 'auto', 'realtime'"),
        (
            ("--qps", "1", "--adapter", "realtime", "--model", "m"),
            "--model is for OpenAI",
        ),
        (("--qps", "1", "--json", "--json-events", "-"), "both want standard output"),
        (("--qps", "1", "--json-events", "no/e"), "--json-events no/e: No such file or directory"),
    ],
)
def test_what_does_not_fit_together(
    trace: Path, arguments: tuple[str, ...], what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    code = s2l_here(["replay", str(trace), "--target", "http://127.0.0.1:9", *arguments])
    said = capfd.readouterr()
    assert code == USAGE, said.err
    assert what in said.err
    assert len(said.err.splitlines()) == 1
    assert said.out == ""


def test_a_run_is_not_written_over(
    trace: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.json").write_text("{}")
    options = ["--target", "http://127.0.0.1:9", "--qps", "1", "--out", str(tmp_path)]
    assert s2l_here(["replay", str(trace), *options]) == USAGE
    assert "has a run.json already; name another folder" in capfd.readouterr().err


def test_a_dry_run_sends_nothing(  # type: ignore[no-untyped-def]
    here, trace: Path, mock_url: str, tmp_path: Path
) -> None:
    options = ("--qps", "2", "--queries", "50", "--delivery", "stream", "--dry-run")
    result = here("replay", trace, "--target", mock_url, *options, "--json")
    assert result.code == 0, result.err
    plan = result.json()
    assert (plan["requests_per_pass"], plan["queries"], plan["passes"]) == (50, 40, ["stream"])
    assert plan["rate_qps"] == 2.0
    assert not (tmp_path / "runs").exists()
    text = here("replay", trace, "--target", mock_url, *options).out
    assert "requests in each: 50 of 40 queries, 2 a second" in text


def test_events_tell_how_it_goes(  # type: ignore[no-untyped-def]
    s2l, trace: Path, mock_url: str, run: Path, tmp_path: Path
) -> None:
    options = ("--qps", "40", "--queries", "30", "--slo", "ttft_s<10s", "--out", run, *FAST)
    file = tmp_path / "events.jsonl"
    result = s2l("replay", trace, "--target", mock_url, *options, "--json-events", file)
    assert result.code == 0, result.err
    told = events_of(file)
    assert told[0]["event"] == "started"
    assert [one["name"] for one in told if one["event"] == "pass"] == ["stream", "wait"]
    over = [one for one in told if one["event"] == "progress" and one["over"]]
    assert [(one["name"], one["ended"], one["planned"]) for one in over] == [
        ("stream", 30, 30),
        ("wait", 30, 30),
    ]
    assert told[-1]["event"] == "finished"
    assert (told[-1]["counts"]["succeeded"], told[-1]["exit_code"]) == (60, 0)
    assert told[-1]["run"] == str(run)
    assert "wait: 30/30" in result.err
    assert "stream: 30/30" in result.err
    assert options_of(run)["slo"] == "ttft_s<10s"


def test_the_servers_metrics_are_in_the_run(  # type: ignore[no-untyped-def]
    here, trace: Path, mock_url: str, run: Path
) -> None:
    options = (
        "--qps",
        "20",
        "--queries",
        "8",
        "--server-metrics-interval",
        "50ms",
        "--out",
        run,
        *FAST,
    )
    assert here("replay", trace, "--target", mock_url, *options, "--out", run).code == 0
    table = pq.read_table(run / "server.parquet")
    assert {"running", "waiting", "kv_usage"} <= set(table["name"].unique().to_pylist())
    assert set(table["delivery"].unique().to_pylist()) == {"wait", "stream"}
    output = table.filter(pc.equal(table["name"], "output_tokens"))["value"].to_pylist()
    assert output == sorted(output)


def test_a_closed_loop(  # type: ignore[no-untyped-def]
    here, trace: Path, mock_url: str, run: Path
) -> None:
    options = ("--concurrency", "2", "--queries", "12", "--delivery", "wait", "--out", run, *FAST)
    result = here("replay", trace, "--target", mock_url, *options)
    assert result.code == 0, result.err
    rows = pq.read_table(run / "requests.parquet").to_pylist()
    assert len(rows) == 12
    moments = sorted(
        [(row["start_us"], 1) for row in rows] + [(row["end_us"], -1) for row in rows],
    )
    under_way = [sum(step for _, step in moments[: n + 1]) for n in range(len(moments))]
    assert max(under_way) == 2


def test_a_schedule_by_ramp(  # type: ignore[no-untyped-def]
    here, trace: Path, mock_url: str, run: Path
) -> None:
    """With a rate of 10 + 20 t the k-th start is where 10 t + 10 t^2 = k."""
    options = ("--arrivals", "ramp:10..30/1s", "--burstiness", "inf", "--delivery", "wait", *FAST)
    assert here("replay", trace, "--target", mock_url, *options, "--out", run).code == 0
    rows = pq.read_table(run / "requests.parquet").to_pylist()
    times = sorted(row["start_intended_us"] for row in rows)
    starts = [time - times[0] for time in times]
    assert starts == [round((math.sqrt(1 + 4 * k / 10) - 1) / 2 * 1e6) for k in range(20)]


def test_answers_at_several_moments(  # type: ignore[no-untyped-def]
    here, trace: Path, mock_url: str, run: Path
) -> None:
    options = ("--qps", "40", "--queries", "4", "--answer-at", "50%,100%", "--out", run, *FAST)
    assert here("replay", trace, "--target", mock_url, *options).code == 0
    table = pq.read_table(run / "requests.parquet")
    assert set(table["answer_at"].unique().to_pylist()) == {"50%", None}
    assert table.num_rows == 16


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_any_openai_compatible_server(  # type: ignore[no-untyped-def]
    here, trace: Path, mock_url: str, run: Path, api: str
) -> None:
    options = (
        "--qps",
        "20",
        "--queries",
        "4",
        "--adapter",
        "openai",
        "--api",
        api,
        "--out",
        run,
        *FAST,
    )
    result = here("replay", trace, "--target", mock_url, *options)
    assert result.code == 0, result.err
    target = json.loads((run / "run.json").read_text())["target"]
    assert (target["adapter"], target["settings"]["api"]) == ("openai", api)


@pytest.fixture
def replaying(
    program: str, trace: Path, mock_url: str, tmp_path: Path
) -> Iterator["subprocess.Popen[str]"]:
    """A replay of 40 requests in 4 s, one pass, at its first request's end."""
    command = [program, "replay", str(trace), "--target", mock_url, "--qps", "10", *FAST]
    command += ["--queries", "40", "--delivery", "stream", "--arrivals", "constant"]
    command += ["--out", str(tmp_path / "run"), "--json-events", "-"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "progress" and event["ended"] >= 1:
                break
        yield process


@pytest.mark.parametrize("interrupts", [1, 2])
def test_interrupting_keeps_what_was_measured(  # type: ignore[no-untyped-def]
    replaying: "subprocess.Popen[str]", interrupts: int, here, run: Path
) -> None:
    assert replaying.stderr is not None
    replaying.send_signal(signal.SIGINT)
    for line in replaying.stderr:
        if line.startswith("stopping: "):
            break
    if interrupts == 2:
        replaying.send_signal(signal.SIGINT)
    out, rest = replaying.communicate(timeout=30)
    assert replaying.returncode == INTERRUPTED
    assert "interrupted: what was measured until then is kept" in rest
    last = json.loads(out.splitlines()[-1])
    assert (last["event"], last["interrupted"], last["exit_code"]) == (
        "finished",
        True,
        INTERRUPTED,
    )
    counts = json.loads((run / "run.json").read_text())["counts"]
    assert counts["planned"] == counts["sent"] + counts["unsent"] == 40
    assert counts["succeeded"] >= 1
    assert counts["unsent"] >= 1
    assert here("report", run).code == 0
