"""A trace on the Hub is pulled, checked and replayed in one command."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from s2l.cli import run
from s2l.workloads.trace import Trace

S2L = str(Path(sys.executable).with_name("s2l"))


def test_a_pinned_trace_of_the_hub_is_replayed(
    hub: Any,
    published: str,
    ready: Trace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    mock = [S2L, "mock", "--port", "0", "--overhead-ms", "2", "--tpot-ms", "1"]
    with subprocess.Popen(mock, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        url = next(w for w in server.stderr.readline().split() if w.startswith("http://"))
        options = ["--target", url, "--qps", "50", "--max-tokens", "2", "--no-calibrate", "--json"]
        options += ["--out", "run"]
        code = run(["replay", f"hf:me/small@{published}", *options])
        server.terminate()
    said = capfd.readouterr()
    assert code == 0, said.err
    info = json.loads(said.out)["info"]
    assert info["trace"]["sha256"] == ready.sha256
    finished = ready.manifest.counts.finished_queries
    assert info["counts"]["succeeded"] == 2 * finished > 0
