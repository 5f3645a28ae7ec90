"""Where traces and runs are written by default, and which is the newest."""

from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path

import click

TRACES = Path("traces")
RUNS = Path("runs")


def new_folder(parent: Path, kind: str) -> Path:
    """A new folder of this command alone: ``<kind>-<UTC time>``, with a number when there is one.

    It goes again with the command, if nothing came into it.

    Raises:
        OSError: it cannot be made.
    """
    stem = f"{kind}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    was_there = parent.is_dir()
    parent.mkdir(parents=True, exist_ok=True)
    for n in count():
        path = parent / (stem if n == 0 else f"{stem}-{n}")
        with suppress(FileExistsError):
            path.mkdir()
            break
    context = click.get_current_context(silent=True)
    if context is not None:
        context.call_on_close(partial(_remove_empty, *((path,) if was_there else (path, parent))))
    return path


def _remove_empty(*folders: Path) -> None:
    for folder in folders:
        with suppress(OSError):  # something is in it, or it has gone already
            folder.rmdir()


def newest(parent: Path, marker: str, *, kind: str, how: str) -> Path:
    """The folder below ``parent`` whose ``marker`` file, written last, is the youngest.

    Raises:
        click.UsageError: there is none; ``how`` says what makes one.
    """
    marked = [file for file in parent.glob(f"*/{marker}") if file.is_file()]
    if not marked:
        raise click.UsageError(f"no {kind} in {parent}/; {how}")
    return max(marked, key=lambda file: file.stat().st_mtime).parent


def unused(folder: Path, marker: str, *, advice: str) -> Path:
    """The folder, where nothing of this kind was written to it yet.

    Raises:
        click.UsageError: its ``marker`` is there: what was measured is not to be lost.
    """
    if (folder / marker).exists():
        raise click.UsageError(f"{folder}: has a {marker} already; {advice}")
    return folder
