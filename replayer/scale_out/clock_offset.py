"""How far the clock of another process is from ours."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_TIME_NAMESPACE: Final = Path("/proc/self/ns/time")
"""Containers can have a monotonic clock of their own."""
ROUNDS: Final = 50


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """``their time = our time + offset_ns``, wrong by at most ``error_ns``."""

    offset_ns: int
    error_ns: int


def boot_id() -> str:
    """Names one start of one machine, whose processes share its monotonic clock, but for those
    that were given another; empty where the system does not tell."""
    if not _BOOT_ID.is_file():
        return ""
    clock = os.readlink(_TIME_NAMESPACE) if _TIME_NAMESPACE.is_symlink() else ""
    return f"{_BOOT_ID.read_text().strip()} {clock}".strip()


def measure_offset(
    their_now_ns: Callable[[], int],
    their_boot_id: str,
    *,
    now_ns: Callable[[], int] = time.monotonic_ns,
    rounds: int = ROUNDS,
) -> ClockOffset:
    """Ask for the other clock and take the quickest answer: Cristian's algorithm (1989).

    The other clock was read at some moment between asking and the answer, so that half of the
    round trip is the bound of the error. On one machine there is one clock and nothing to ask.
    """
    if their_boot_id and their_boot_id == boot_id():
        return ClockOffset(0, 0)
    best: ClockOffset | None = None
    for _ in range(rounds):
        asked_ns = now_ns()
        theirs_ns = their_now_ns()
        answered_ns = now_ns()
        error_ns = (answered_ns - asked_ns + 1) // 2
        if best is None or error_ns < best.error_ns:
            best = ClockOffset(theirs_ns - (asked_ns + answered_ns) // 2, error_ns)
    if best is None:
        raise ValueError(f"rounds is {rounds}; it must be 1 or more")
    return best
