"""A run folder is written by one process at a time."""

import fcntl
import os
from pathlib import Path
from typing import Final

RESERVE: Final = ".reserve"
"""The file that is locked; it holds the room kept for the run's end."""


def lock_run(run: Path) -> int:
    """Take the folder for this process until it ends or the returned descriptor is closed.

    Raises:
        BlockingIOError: another process writes there.
        OSError: the folder cannot be written.
    """
    descriptor = os.open(run / RESERVE, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
