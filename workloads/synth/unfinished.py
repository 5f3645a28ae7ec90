"""Folders that a failure leaves nothing in: what they were made from can make them again."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def unfinished_removed(path: Path) -> Iterator[None]:
    """Remove the folder when the block fails; one that held something before is left alone."""
    had_content = path.is_file() or (path.is_dir() and next(path.iterdir(), None) is not None)
    try:
        yield
    except BaseException:
        if not had_content:
            shutil.rmtree(path, ignore_errors=True)
        raise
