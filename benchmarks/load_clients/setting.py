"""Where clients are measured: the mock on one core, they on another, peers in environments."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from peers import Peer

TTFT_MS = 50
INSTALL_S = 1800
MAIN_PRIORITY = 2
_MOCK = "import gc; gc.disable(); from s2l.cli import main; main()"
"""A ruler does not pause to collect garbage."""

Rank = Literal["usual", "high", "real-time"]


@dataclass(frozen=True)
class Mock:
    """A mock that serves."""

    url: str
    pid: int


@contextmanager
def mock(*, tpot_ms: float, first: bool) -> Iterator[Mock]:
    """A mock on the first core."""
    command = [sys.executable, "-c", _MOCK, "mock", "--port", "0", "--json"]
    command += ["--ttft-ms", str(TTFT_MS), "--tpot-ms", str(tpot_ms)]
    rank: Rank = "real-time" if first else "usual"
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: pin(0, rank),
    )
    try:
        assert process.stdout is not None
        yield Mock(json.loads(process.stdout.readline())["url"], process.pid)
    finally:
        process.terminate()
        process.wait()


def pin(which: int, rank: Rank) -> None:
    """Keep this process to one core: the first for the mock, the last for clients. ``high`` has
    more of it than others; ``real-time`` runs before all that is scheduled as usual, and is no
    choice for a client of several processes, of which one would wait until another sleeps."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[which]})
    if rank == "high":
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    elif rank == "real-time":
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(MAIN_PRIORITY))


def may_run_first() -> bool:
    """Whether this user may use the real-time class."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(MAIN_PRIORITY))
    except PermissionError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


def rank_threads(pid: int) -> None:
    """Let the main thread of a real-time process interrupt its others, as it can when they are
    scheduled as usual."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        if int(thread) != pid:
            with suppress(ProcessLookupError):
                os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(MAIN_PRIORITY - 1))


def environment(folder: Path, peer: Peer) -> Path:
    """The ``bin`` folder of a virtual environment with what a peer needs."""
    if peer.module is not None:
        if importlib.util.find_spec(peer.module) is None:
            raise ModuleNotFoundError(f"{peer.module} is not in this environment")
        return Path(sys.executable).parent
    ready = folder / "ready"
    if not ready.exists():
        say(f"installing {', '.join([*peer.alone, *peer.requirements])}")
        python = peer.python or sys.executable
        _run(python, "-m", "venv", "--clear", folder)
        install_quietly = (folder / "bin" / "python", "-m", "pip", "install", "--quiet")
        _run(*install_quietly, *peer.requirements)
        if peer.alone:
            _run(*install_quietly, "--no-deps", *peer.alone)
        ready.touch()
    return folder / "bin"


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_S)


def say(text: str) -> None:
    """To standard error."""
    print(text, file=sys.stderr, flush=True)
