"""Where engines write what they say, and how much of it is kept."""

import os
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

KEPT: Final = 20
"""So many logs are kept, the newest."""

_numbers = count(1)


def new_log_path() -> Path:
    """A fresh path in the user's cache. Older logs are removed, so that ``KEPT`` are left with it;
    an engine that still writes to one of them goes on undisturbed."""
    folder = user_cache_path("s2l") / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    for old in sorted(folder.glob("engine-*.log"), key=_changed_s, reverse=True)[KEPT - 1 :]:
        old.unlink(missing_ok=True)
    started = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return folder / f"engine-{started}-{os.getpid()}-{next(_numbers)}.log"


def _changed_s(path: Path) -> float:
    with suppress(FileNotFoundError):  # another process removed it just now
        return path.stat().st_mtime
    return 0.0
