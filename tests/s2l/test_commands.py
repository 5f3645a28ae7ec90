"""The commands as a user types them, on real parts: site, crawl, mock, replay, report."""

import subprocess
import sys
from pathlib import Path

import pytest

from s2l.cli import COMMANDS
from s2l.exits import FAILED, NOT_VALID, known_errors

# Each command is imported by a process that has imported no other; only the packages that most
# of them take seconds to import are there before.
EVERY_HELP = """
import os, sys
import aiohttp, altair, numpy, pyarrow, rich
from s2l.cli import COMMANDS, run

for command in COMMANDS:
    if (child := os.fork()) == 0:
        os._exit(run([command, "--help"]))
    print(command, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=sys.stderr)
"""


def test_help_lists_every_command(s2l) -> None:  # type: ignore[no-untyped-def]
    result = s2l("--help")
    assert result.code == 0
    for command in COMMANDS:
        assert command in result.out


def test_every_command_has_help() -> None:
    done = subprocess.run([sys.executable, "-c", EVERY_HELP], capture_output=True, text=True)
    assert done.stderr.splitlines() == [f"{command} 0" for command in COMMANDS]
    for command in COMMANDS:
        assert f"Usage: s2l {command} " in done.stdout


def test_every_error_with_an_exit_code_exists() -> None:
    import importlib

    for name in known_errors():
        module, _, kind = name.rpartition(".")
        assert issubclass(getattr(importlib.import_module(module), kind), Exception), name


def test_a_crawl_is_a_valid_trace(here, crawled: Path) -> None:  # type: ignore[no-untyped-def]
    info = here("dataset", "info", crawled, "--json").json()
    assert (info["queries"], info["finished_queries"], info["failures"]) == (4, 4, {})
    assert info["arrivals"] == {"search": 4, "append": 28, "replace": 0, "end": 4}
    assert here("dataset", "info", crawled).out.startswith("name")
    result = here("dataset", "validate", crawled, "--json")
    assert (result.code, result.json()["problems"]) == (0, [])


def test_replay_against_a_target_writes_a_run_and_a_report(  # type: ignore[no-untyped-def]
    s2l, here, crawled: Path, mock_url: str, tmp_path: Path
) -> None:
    options = ("--qps", "20", "--time-scale", "0.05", "--context-tokens", "300")
    result = s2l("replay", crawled, "--target", mock_url, *options, "--json")
    assert result.code == 0, result.err
    summary = result.json()
    assert summary["info"]["counts"]["succeeded"] == 8
    assert summary["info"]["command"][:2] == ["s2l", "replay"]
    assert summary["parity"]["identical"] == summary["parity"]["pairs"] == 4
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "report.html").stat().st_size > 100_000
    assert "sooner" in result.err or "later" in result.err
    again = here("report", "--json")
    assert again.code == 0
    assert again.json()["gain"] == summary["gain"]


def test_the_newest_trace_is_the_default(  # type: ignore[no-untyped-def]
    here, crawled: Path, mock_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = crawled.parents[1]
    monkeypatch.chdir(folder)
    options = ("--target", mock_url, "--qps", "10", "--time-scale", "0.05")
    result = here("replay", *options, "--out", tmp_path / "run", "--json")
    assert result.code == 0, result.err
    assert result.json()["info"]["trace"]["path"] == str(crawled.relative_to(folder))


def test_strict_makes_an_invalid_run_exit_3(  # type: ignore[no-untyped-def]
    here, crawled: Path, mock_url: str
) -> None:
    # No answer can be complete a millisecond after its context was due.
    options = ("--qps", "1000", "--time-scale", "0.001", "--timeout", "0.001", "--strict")
    result = here("replay", crawled, "--target", mock_url, *options, "--warmup", "0")
    assert result.code in (FAILED, NOT_VALID)
    assert "INVALID" in result.err
