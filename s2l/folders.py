"""Where traces and runs are written by default, and which is the newest."""

from datetime import UTC, datetime
from pathlib import Path

import click

TRACES = Path("traces")
RUNS = Path("runs")


def new_folder(parent: Path, kind: str) -> Path:
    """A folder that is not there yet: ``<kind>-<UTC time>``, with a number when one is."""
    stem = f"{kind}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    candidates = (parent / (stem if n == 0 else f"{stem}-{n}") for n in range(1000))
    return next(path for path in candidates if not path.exists())


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
