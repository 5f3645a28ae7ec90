"""Files that are whole or not there: written aside, synced, renamed, folder synced."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power loss."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Make all files below a folder survive a power loss, before it is given its name."""
    for file in folder.rglob("*"):
        if file.is_dir():
            sync_folder(file)
            continue
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
    sync_folder(folder)


@contextmanager
def durable_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write; it gets its name when the block ends well, and never otherwise.

    Raises:
        OSError: it cannot be written; named is ``path``, not the file aside.
    """
    aside = path.with_name(path.name + ".tmp")
    with _naming(path, aside):
        try:
            with aside.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
    sync_folder(path.parent)


@contextmanager
def _naming(path: Path, aside: Path) -> Iterator[None]:
    """Have errors about the file aside name the one that a person asked for."""
    try:
        yield
    except OSError as error:
        if str(error.filename) != str(aside):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def write_durably(path: Path, data: bytes) -> None:
    """Write a whole small file so that a reader sees all of it or the one before."""
    with durable_file(path) as file:
        file.write(data)
