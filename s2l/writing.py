"""Files that a command writes: what the system says of one names it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Name ``target`` in an error of the system that names no file, as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(target)) from None
