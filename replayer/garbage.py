"""Garbage collection that does not run into a measurement: off, but for gaps with nothing to do."""

import gc
import time
from typing import Any, Final

WORTH_COLLECTING: Final = 2_000
"""New objects from which on a gap is used to look through them:
some tenths of a millisecond."""


def settle() -> None:
    """Look through all that exists, once, before a pass's start is fixed: among many objects it
    takes longer than the lead of a pass, and the first requests would be late by that."""
    gc.collect()
    gc.freeze()


class GarbageControl:
    """Takes the collector over while it is entered. What exists by then is never looked through."""

    def __init__(self) -> None:
        self.pause_us = 0
        """Time spent in collections so far."""
        self._started_ns = 0
        self._was_enabled = False

    def __enter__(self) -> "GarbageControl":
        self._was_enabled = gc.isenabled()
        gc.collect()
        gc.freeze()
        gc.disable()
        gc.callbacks.append(self._note)
        return self

    def __exit__(self, *exc: object) -> None:
        gc.callbacks.remove(self._note)
        gc.unfreeze()
        if self._was_enabled:
            gc.enable()

    def use_gap(self) -> None:
        """Look through what is new, where that is worth it; called when nothing is due soon."""
        if gc.get_count()[0] >= WORTH_COLLECTING:
            gc.collect(1)

    def _note(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            self._started_ns = time.monotonic_ns()
        else:
            self.pause_us += (time.monotonic_ns() - self._started_ns) // 1000
