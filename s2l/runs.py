"""Runs that a command is given, or the newest: one that was killed is recovered first."""

from pathlib import Path
from typing import Any, Final

import click

from s2l.folders import RUNS
from s2l.progress import say

_ENDS: Final = {"run.json": "run.json", "journal/begun.json": "journal/requests.rows"}
"""What makes a folder a run that came to its end, or one that was killed, and what is written last
in it."""


class _RunFolder(click.Path):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        return _recovered(Path(str(super().convert(value, param, ctx))))


RUN: Final = _RunFolder(path_type=Path)
"""The type of arguments that name runs, or folders of runs."""


def newest_run() -> Path:
    """The run in ``runs/`` that ended last; one that is still being written has not ended.

    Raises:
        click.UsageError: there is none.
        RunError: it was killed, and cannot be recovered.
    """
    from s2l.replayer.run_recovery import StillWritten

    found = {
        path: (path / last).stat().st_mtime
        for path in RUNS.glob("*/")
        for mark, last in _ENDS.items()
        if (path / mark).is_file() and (path / last).is_file()
    }
    for path in sorted(found, key=found.__getitem__, reverse=True):
        try:
            return _recovered(path)
        except StillWritten:
            continue
    raise click.UsageError(f"no run in {RUNS}/; make one with: s2l replay")


def _recovered(path: Path) -> Path:
    """The folder, where nothing of a killed run is left to be recovered.

    Raises:
        RunError: its replay is still under way, or what it left is damaged.
        RunNotWritten: the disk does not take it.
    """
    if not (path / "journal" / "begun.json").is_file():  # before anything large is imported
        return path
    from s2l.replayer.run_recovery import recover_run, was_killed

    killed = was_killed(path)
    counts = recover_run(path).counts
    if killed:
        say(f"{path}: its replay was killed; recovered {counts.sent:,} requests")
    return path
