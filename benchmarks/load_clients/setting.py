"""Where clients are measured: the mock on one core, they on another, peers in environments."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from peers import Peer

TTFT_MS, TPOT_MS = 50, 10
INSTALL_S = 1800


@contextmanager
def mock(*, first: bool) -> Iterator[str]:
    """The address of a mock on the first core."""
    command = [sys.executable, "-m", "s2l", "mock", "--port", "0", "--json"]
    command += ["--ttft-ms", str(TTFT_MS), "--tpot-ms", str(TPOT_MS)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=lambda: pin(0, first=first)
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.terminate()
        process.wait()


def pin(which: int, *, first: bool) -> None:
    """Keep this process to one core: the first for the mock, the last for clients; and, if so
    asked, ahead of other programs: by niceness, since of threads of a real-time class that share a
    core one would wait until the other sleeps."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[which]})
    if first:
        os.setpriority(os.PRIO_PROCESS, 0, -20)


def environment(folder: Path, peer: Peer) -> Path:
    """The ``bin`` folder of a virtual environment with what a peer needs."""
    if peer.module is not None:
        if importlib.util.find_spec(peer.module) is None:
            raise ModuleNotFoundError(f"{peer.module} is not in this environment")
        return Path(sys.executable).parent
    ready = folder / "ready"
    if not ready.exists():
        say(f"installing {', '.join(peer.requirements)}")
        python = peer.python or sys.executable
        subprocess.run(
            [python, "-m", "venv", "--clear", folder], check=True, capture_output=True, text=True
        )
        subprocess.run(
            [folder / "bin" / "python", "-m", "pip", "install", "--quiet", *peer.requirements],
            check=True,
            capture_output=True,
            text=True,
            timeout=INSTALL_S,
        )
        ready.touch()
    return folder / "bin"


def say(text: str) -> None:
    """To standard error."""
    print(text, file=sys.stderr, flush=True)
