"""Runs the program as a user does, in a folder of its own."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from s2l.cli import run

S2L = Path(sys.executable).with_name("s2l")


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def message(self) -> str:
        """The one line that a failure says, checked to be one."""
        lines = [line for line in self.err.splitlines() if line.startswith("s2l: ")]
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err
        return lines[0]


Run = Callable[..., Result]


@pytest.fixture
def s2l(tmp_path: Path) -> Run:
    """``s2l("replay", "--qps", "1")`` in ``tmp_path``."""

    def run(
        *arguments: str | Path,
        limit_bytes: int | None = None,
        environment: Mapping[str, str] | None = None,
        timeout_s: float = 120,
    ) -> Result:
        def limit() -> None:
            """No file may grow beyond this: what a full disk is to a writer."""
            if limit_bytes is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))

        done = subprocess.run(
            [str(S2L), *map(str, arguments)],
            preexec_fn=limit,
            cwd=tmp_path,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def here(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """As ``s2l``, in this process: where it is not starting that is tested, but what it does."""
    monkeypatch.chdir(tmp_path)

    def run_here(*arguments: str | Path) -> Result:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        return Result(code, *capfd.readouterr())

    return run_here


@pytest.fixture
def program() -> str:
    """Path of the installed program."""
    return str(S2L)


@pytest.fixture(scope="session")
def mock_url() -> Iterator[str]:
    """A running ``s2l mock``, one for all tests."""
    command = [str(S2L), "mock", "--port", "0", "--overhead-ms", "2", "--tpot-ms", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        yield next(word for word in line.split() if word.startswith("http://"))
        process.terminate()


@pytest.fixture(scope="session")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real crawl of the demo site, in a hurry, in a folder where nothing else is."""
    folder = tmp_path_factory.mktemp("crawled")
    command = [str(S2L), "collect", "crawl", "-n", "4", "--speed", "20"]
    subprocess.run(command, cwd=folder, check=True, timeout=120, capture_output=True)
    (trace,) = (folder / "traces").iterdir()
    return trace
