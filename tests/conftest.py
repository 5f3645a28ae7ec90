"""A real vLLM, started by hand as a user would who does not run ``s2l serve``; and which tests
want the machine for themselves."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from s2l.serving_adapter.embedded.model import MODEL_NAME, prepare
from s2l.serving_adapter.embedded.server import free_port

START_S = 300

TIMED = (
    "replayer",
    "collectors/test_clock_truth.py",
    "collectors/test_crawl.py",
    "collectors/test_demo_site.py",
    "collectors/test_latency.py",
    "collectors/test_politeness.py",
    "s2l/test_collecting_on_ray.py",
    "s2l/test_sweep_command.py",
    "serving_adapter/test_mock_command.py",
    "serving_adapter/test_mock_faults.py",
    "serving_adapter/test_mock_realtime.py",
    "serving_adapter/test_precise_timer.py",
    "serving_adapter/test_realtime_limits.py",
)
"""Folders and files whose tests assert when something happened, or take the whole machine: no
others run beside them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    timed = tuple(str(Path(__file__).parent / name) for name in TIMED)
    for item in items:
        if str(item.path).startswith(timed):
            item.add_marker("timed")


@dataclass(frozen=True)
class Vllm:
    url: str
    model: str
    api_key: str


@pytest.fixture(scope="session")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vllm]:
    """Stock vLLM with VLLM_PLUGINS=s2l and an API key, for all tests of a run."""
    server = Vllm(f"http://127.0.0.1:{(port := free_port('127.0.0.1', 0))}", MODEL_NAME, "key-1")
    log = tmp_path_factory.mktemp("vllm") / "log"
    arguments = ["--model", prepare().source, "--served-model-name", MODEL_NAME]
    arguments += ["--host", "127.0.0.1", "--port", str(port), "--dtype", "float32"]
    arguments += ["--max-model-len", "2048", "--block-size", "32", "--enforce-eager"]
    arguments += ["--enable-prompt-tokens-details"]
    environment = {"VLLM_PLUGINS": "s2l", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_API_KEY": "key-1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "vllm.entrypoints.launchers.api_server.entry", *arguments],
            env={**os.environ, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _until_healthy(server.url, process, log)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(30)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _until_healthy(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline_s = time.monotonic() + START_S
    while time.monotonic() < deadline_s:
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.25)
    raise AssertionError(f"vLLM is not healthy after {START_S} s: {log.read_text()[-3000:]}")
