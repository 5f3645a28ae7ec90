"""The program of the process that looks at strangers' files; see ``Inspector``."""

import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any, Final

from s2l.workloads.sharing.archive_reader import unpack_archive
from s2l.workloads.sharing.errors import NotTrusted
from s2l.workloads.sharing.limits import Limits
from s2l.workloads.sharing.stranger_checks import check_stranger

_ANSWER_BYTES: Final = 4_000
_SIGNALS: Final[dict[int, str]] = {
    signal.SIGALRM: "took too long",
    signal.SIGXCPU: "took too much processor time",
    signal.SIGKILL: "took too much",
    signal.SIGXFSZ: "unpacks to too much",
}


def main() -> None:
    """Answer each request, a line of JSON on standard input, with one on standard output."""
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps({"refused": _in_a_child(request)}), flush=True)


def _in_a_child(request: dict[str, Any]) -> str | None:
    """What is wrong, as found by a child that inherits all imports and has limits."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.close(0)
        _answer(writing, request)
    os.close(writing)
    with open(reading, "rb") as pipe:
        found = pipe.read(_ANSWER_BYTES)
    _, status = os.waitpid(child, 0)
    about = request["paths"][0]
    if os.WIFSIGNALED(status):
        ended = _SIGNALS.get(os.WTERMSIG(status), f"crashed by signal {os.WTERMSIG(status)}")
        return f"{about}: refused: looking at it {ended}"
    if os.WEXITSTATUS(status) or not found:
        return f"{about}: refused: looking at it failed"
    text = found.decode(errors="replace")
    return None if text == "good" else text.removeprefix("bad ")


def _answer(pipe: int, request: dict[str, Any]) -> None:
    """Look, write the answer, and end without any handler of the process above."""
    try:
        limits = Limits(**request["limits"])
        _limit(limits, writes=request["what"] == "unpack")
        answer = _look(request["what"], [Path(path) for path in request["paths"]], limits)
        os.write(pipe, answer.encode(errors="replace")[:_ANSWER_BYTES])
        os._exit(0)
    except BaseException:  # whatever it is: the exit status tells, and nothing of it may go on
        os._exit(1)


def _look(what: str, paths: list[Path], limits: Limits) -> str:
    try:
        if what == "unpack":
            unpack_archive(paths[0], paths[1], limits)
        else:
            check_stranger(paths[0], limits)
    except NotTrusted as refused:
        return f"bad {' '.join(str(refused).split())}"
    except MemoryError:
        return f"bad {paths[0]}: refused: looking at it took too much memory"
    return "good"


def _limit(limits: Limits, *, writes: bool) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(limits.wall_s)
    written = limits.total_bytes if writes else 0
    for kind, most in (
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, written),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (value, value))


if __name__ == "__main__":
    main()
