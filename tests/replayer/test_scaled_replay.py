"""``s2l replay --workers`` as a user runs it: interrupted, killed, on a cluster."""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from s2l.exits import INTERRUPTED, USAGE
from s2l.replayer.run import Run
from s2l.workloads.trace import Trace

S2L = (sys.executable, "-m", "s2l")
PLANNED = 300
WAIT_S = 120.0
CLOCK_AHEAD_S = 5_000


@pytest.fixture
def mock_url() -> Iterator[str]:
    command = [*S2L, "mock", "--port", "0", "--json", "--ttft-ms", "20", "--tpot-ms", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
        process.terminate()


@contextmanager
def _replaying(
    trace: Trace, url: str, out: Path, *options: str, **environment: str
) -> Iterator["subprocess.Popen[str]"]:
    """A replay at 40 a second in a session of its own, as a terminal has one."""
    command = [*S2L, "replay", str(trace.path), "--target", url, "--adapter", "openai"]
    command += ["--qps", "40", "--queries", str(PLANNED), "--delivery", "wait", "--max-tokens", "4"]
    command += ["--time-scale", "0.1", "--warmup", "0", "--no-calibrate", "--json"]
    with subprocess.Popen(
        [*command, "--out", str(out), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, **environment},
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _until(condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < until_s
        time.sleep(0.05)


def _came(url: str) -> int:
    with urllib.request.urlopen(f"{url}/mock/log") as answer:
        return len(answer.read().splitlines())


def _started(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def _check_nothing_runs(processes: list[psutil.Process]) -> None:
    assert processes
    _, alive = psutil.wait_procs(processes, timeout=WAIT_S)
    assert alive == []


def _check_counts(out: Path) -> None:
    counts = Run.open(out).info.counts
    assert counts.planned == PLANNED == counts.sent + counts.unsent
    assert counts.sent == counts.succeeded + sum(counts.failed.values())
    assert 0 < counts.sent < PLANNED
    assert Run.open(out).requests().num_rows == PLANNED


def test_ctrl_c_drains_all_workers_and_leaves_no_process(
    trace: Trace, mock_url: str, tmp_path: Path
) -> None:
    with _replaying(trace, mock_url, tmp_path / "run", "--workers", "2") as process:
        _until(lambda: _came(mock_url) > 40)
        processes = _started(process)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to everyone in front
        out, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == INTERRUPTED, err
    _check_nothing_runs(processes)
    _check_counts(tmp_path / "run")
    counts = Run.open(tmp_path / "run").info.counts
    assert (counts.sent, counts.failed) == (counts.succeeded, {})
    assert json.loads(out)  # and nothing else is on standard output
    assert not [line for line in err.splitlines() if "pid=" in line or "ray" in line.split()]


@pytest.mark.slow
def test_ctrl_c_again_stops_all_workers_at_once(
    trace: Trace, mock_url: str, tmp_path: Path
) -> None:
    options = ("--workers", "2", "--time-scale", "20")  # contexts are due in eight seconds
    with _replaying(trace, mock_url, tmp_path / "run", *options) as process:
        assert process.stderr is not None
        said = next(line for line in process.stderr if " in flight" in line)
        assert ": 0/300 " in said
        processes = _started(process)
        os.killpg(process.pid, signal.SIGINT)
        next(line for line in process.stderr if line.startswith("stopping: "))
        since_s = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        next(line for line in process.stderr if line.startswith("writing the run"))
        assert time.monotonic() - since_s < 3
        process.communicate(timeout=WAIT_S)
    assert process.returncode == INTERRUPTED
    _check_nothing_runs(processes)
    _check_counts(tmp_path / "run")
    assert set(Run.open(tmp_path / "run").info.counts.failed) == {"interrupted"}


@pytest.mark.slow
def test_workers_end_with_a_program_that_is_killed(
    trace: Trace, mock_url: str, tmp_path: Path
) -> None:
    with _replaying(trace, mock_url, tmp_path / "run", "--workers", "2") as process:
        _until(lambda: _came(mock_url) > 40)
        processes = _started(process)
        process.kill()
        process.wait()
        _check_nothing_runs(processes)


def test_more_workers_than_requests_at_once_are_refused(trace: Trace, tmp_path: Path) -> None:
    command = [*S2L, "replay", str(trace.path), "--target", "http://127.0.0.1:1", "--adapter"]
    command += ["openai", "--concurrency", "2", "--workers", "3"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == USAGE
    says = "--workers 3 take one each at least: more than --concurrency allows, which is 2"
    assert says in done.stderr


def _with_other_clock() -> list[str]:
    """What starts a program whose monotonic clock is ahead, as on a machine that runs longer."""
    unshare = shutil.which("unshare")
    ahead = ["--monotonic", str(CLOCK_AHEAD_S), "--boottime", str(CLOCK_AHEAD_S)]
    command = [str(unshare), "--time", *ahead]
    if unshare is None or subprocess.run([*command, "true"], capture_output=True).returncode:
        return []
    return command


@contextmanager
def _node(*options: str, before: list[str], **environment: str) -> Iterator[psutil.Process]:
    ray = str(Path(sys.executable).with_name("ray"))
    command = [*before, ray, "start", *options, "--node-ip-address=127.0.0.1", "--num-cpus=1"]
    with subprocess.Popen(
        [*command, "--block", "--disable-usage-stats"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
    ) as process:
        node = psutil.Process(process.pid)
        try:
            yield node
        finally:
            _kill(node)


def _kill(node: psutil.Process) -> None:
    """As if its machine were switched off."""
    if node.is_running():
        for process in [node, *node.children(recursive=True)]:
            process.kill()


@pytest.mark.slow
def test_a_node_of_a_cluster_that_dies_loses_its_share_only(
    trace: Trace, mock_url: str, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    address = f"127.0.0.1:{port}"
    options = ("--workers", "2", "--ray", address)
    files = f"--temp-dir=/tmp/s2l-test-{port}"
    head = ("--head", f"--port={port}", "--include-dashboard=false", files)
    with _node(*head, before=[], **token):
        _until(lambda: _listens(port))
        with _replaying(trace, mock_url, tmp_path / "few", *options, **token) as process:
            said = process.communicate(timeout=WAIT_S)[1]
        too_many = f"s2l: {address}: the cluster has 1 CPUs; a worker takes one, so that 2 workers"
        assert too_many in said
        with _node(f"--address={address}", before=_with_other_clock(), **token) as second:
            _until(lambda: _cpus(address, token) == 2)
            with _replaying(trace, mock_url, tmp_path / "run", *options, **token) as process:
                _until(lambda: _came(mock_url) > 80)
                _kill(second)
                said = process.communicate(timeout=WAIT_S)[1]
            assert process.returncode == 0, said
    _check_counts(tmp_path / "run")
    _check_cluster_run(Run.open(tmp_path / "run"))
    shutil.rmtree(files.partition("=")[2], ignore_errors=True)


def _check_cluster_run(run: Run) -> None:
    findings = {finding.check: finding for finding in run.info.validity.findings}
    assert " died; " in findings["worker_lost"].text
    within_ms = float(findings["clocks"].text.partition("within ")[2].split()[0])
    assert (0 < within_ms < 5) if _with_other_clock() else within_ms == 0
    rows = run.requests().to_pylist()
    answered = [row for row in rows if row["error_type"] is None]
    assert {row["worker"] for row in answered} == {0, 1}
    # With a clock taken for another they would be late by more than an hour, or early.
    assert all(-5_000 < row["start_us"] - row["start_intended_us"] < 2e6 for row in answered)


def _listens(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def _cpus(address: str, token: dict[str, Any]) -> float:
    ask = "import ray, sys; ray.init(sys.argv[1], log_to_driver=False, logging_level='ERROR'); "
    ask += "print(ray.cluster_resources().get('CPU', 0))"
    done = subprocess.run(
        [sys.executable, "-c", ask, address],
        capture_output=True,
        text=True,
        env={**os.environ, **token},
    )
    return float(done.stdout.split()[-1]) if done.returncode == 0 else 0.0
