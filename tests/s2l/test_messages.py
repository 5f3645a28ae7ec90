"""What commands say to a person: where, what, and what to do."""

import io
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from s2l.exits import FAILED, USAGE
from s2l.replayer.run import Run
from s2l.replaying.live_pass import PassMoment
from s2l.replaying.live_text import line, picture


@pytest.fixture(scope="module")
def a_run(crawled: Path, mock_url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run."""
    path = tmp_path_factory.mktemp("runs") / "a"
    timing = ("--qps", "40", "--time-scale", "0.02", "--max-tokens", "2", "--no-calibrate")
    command = [
        sys.executable,
        "-m",
        "s2l",
        "replay",
        crawled,
        "--target",
        mock_url,
        *timing,
        "--out",
        path,
    ]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    return path


@pytest.mark.parametrize(
    ("command", "file"),
    [
        (("report", "a"), "a/report.html"),
        (("export", "a", "--format", "csv", "--out", "a.csv"), "a.csv"),
        (("publish", "a", "--to", "site"), "site"),
    ],
)
def test_a_full_disk_is_told_with_the_file(
    s2l: Any, a_run: Path, tmp_path: Path, command: tuple[str, ...], file: str
) -> None:
    shutil.copytree(a_run, tmp_path / "a")
    result = s2l(*command, limit_bytes=100)
    assert result.code == FAILED
    assert result.message.startswith(f"s2l: {file}")
    assert result.message.endswith(": File too large")


def test_recovering_what_was_finished_says_so(here: Any, crawled: Path, tmp_path: Path) -> None:
    shutil.copytree(crawled, tmp_path / "copy")
    result = here("dataset", "recover", "copy")
    assert result.code == 0
    assert "was finished and holds" in result.err


def test_a_taken_port_of_the_site_says_how_to_get_another(s2l: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = s2l("site", "--port", str(taken.getsockname()[1]))
    assert result.code == FAILED
    assert result.message.endswith("--port 0 takes a free one")


def test_private_addresses_name_the_option_that_allows_them(here: Any, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"query": "a?", "urls": ["http://127.0.0.1:1/"]}\n')
    result = here("collect", "crawl", "--queries", "q.jsonl", "--search", "urls")
    assert result.code == FAILED
    assert "--allow-private or --own-site" in result.err


def test_help_of_the_captures_is_not_cut_off(here: Any) -> None:
    commands = here("collect", "--help").out.partition("Commands:")[2]
    assert "crawl" in commands
    assert "..." not in commands


def test_a_constant_time_to_first_token_takes_no_other_times(here: Any) -> None:
    result = here("mock", "--ttft-ms", "5", "--overhead-ms", "3")
    assert result.code == USAGE
    assert "leave out --overhead-ms" in result.message


@pytest.mark.parametrize("width", [60, 80, 140])
def test_a_narrow_terminal_shows_all_of_a_replay(width: int) -> None:
    now = PassMoment(
        name="stream",
        planned=200,
        ended=120,
        in_flight=10,
        failed={"timeout": 2},
        elapsed_s=2.0,
        offered_qps=65.0,
        achieved_qps=60.0,
        ttft_p50_s=0.052,
        ttft_p95_s=0.0611,
        lag_p99_s=0.0004,
        left_s=3.0,
    )
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(picture([now], console))
    shown = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    for part in ("stream", "120/200", "60.0", "65.0", "52.0 ms", "61.1 ms", "timeout 2", "3 s"):
        assert part in shown


def _replay(program: str, url: str) -> list[str]:
    """Three queries, quickly."""
    asked = ["replay", "shipped:demo-crawl", "--target", url, "--qps", "50", "--queries", "3"]
    return [program, *asked, "--no-calibrate", "--time-scale", "0.02", "--warmup", "0"]


def test_replays_begun_in_the_same_second_have_folders_of_their_own(
    program: str, mock_url: str, tmp_path: Path
) -> None:
    command = _replay(program, mock_url)
    both = [subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) for _ in range(2)]
    assert [one.wait(120) for one in both] == [0, 0]
    runs = [Run.open(path) for path in (tmp_path / "runs").iterdir()]
    assert [run.info.counts.succeeded for run in runs] == [6, 6]


def test_a_folder_that_nothing_came_into_goes_again(here: Any, tmp_path: Path) -> None:
    result = here("replay", "shipped:demo-crawl", "--target", "http://127.0.0.1:9", "--qps", "1")
    assert result.code == FAILED
    assert not (tmp_path / "runs").exists()


def test_shipped_traces_are_found_by_name(here: Any) -> None:
    assert here("dataset", "info", "shipped:demo-crawl").code == 0
    result = here("dataset", "info", "shipped:no")
    assert result.message.endswith("no such trace; there are: demo-ann, demo-crawl")


def test_a_replay_goes_on_when_nobody_reads_what_it_says(
    program: str, mock_url: str, tmp_path: Path
) -> None:
    command = [*_replay(program, mock_url), "--out", str(tmp_path / "run")]
    reader, writer = os.pipe()
    os.close(reader)
    assert subprocess.run(command, stderr=writer, timeout=120, check=False).returncode == 0
    os.close(writer)
    assert Run.open(tmp_path / "run").info.counts.succeeded == 6


@pytest.mark.parametrize("command", [(), ("dataset",)])
def test_without_a_command_the_help_is_shown(here: Any, command: tuple[str, ...]) -> None:
    result = here(*command)
    assert result.code == USAGE
    assert result.err.startswith("Usage: s2l")
    assert "\nCommands:\n" in result.err


def test_a_closed_loop_of_some_seconds_has_no_number_to_reach() -> None:
    at = PassMoment(
        name="wait",
        planned=None,
        ended=12,
        in_flight=3,
        failed={},
        elapsed_s=2.0,
        offered_qps=None,
        achieved_qps=6.0,
        ttft_p50_s=None,
        ttft_p95_s=None,
        lag_p99_s=None,
        left_s=None,
    )
    assert line(at) == "wait: 12 · 6.00 requests/s · 3 in flight"


def test_a_named_folder_is_the_only_one_that_is_made(here: Any, tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    target = ("--target", "http://127.0.0.1:9", "--qps", "1", "--no-calibrate", "--out", "x")
    result = here("replay", "shipped:demo-crawl", *target)
    assert "127.0.0.1:9" in result.message
    result = here("sweep", "shipped:demo-crawl", *target)
    assert "127.0.0.1:9" in result.message


def test_an_empty_folder_of_the_user_stays(here: Any, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    assert here("replay", "shipped:demo-crawl", "--target", "http://127.0.0.1:9", "--qps", "1").code
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_run_that_never_began_is_not_the_newest(here: Any, a_run: Path, tmp_path: Path) -> None:
    shutil.copytree(a_run, tmp_path / "runs" / "whole")
    (tmp_path / "runs" / "never" / "journal").mkdir(parents=True)
    (tmp_path / "runs" / "never" / "journal" / "requests.rows").write_bytes(b"")
    result = here("report")
    assert result.code == 0
    assert "whole" in result.err
