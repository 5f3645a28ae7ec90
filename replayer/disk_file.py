"""A file that a table is written to while a run goes on, and that survives a disk that is full.

What a library writes stays in memory until ``flush``; a write that the disk refuses is then taken
up again where it stopped, once room was made.
"""

import os
from collections.abc import Callable
from pathlib import Path

from s2l.workloads.durable import sync_folder


class DiskFile:
    """A binary file to write; ``commit`` gives it its name, ``discard`` removes it.

    ``make_room`` is called when the disk refuses; it returns whether trying again is worth it.
    """

    def __init__(self, path: Path, make_room: Callable[[OSError], bool]) -> None:
        self._path = path
        self._aside = path.with_name(path.name + ".tmp")
        self._fd = os.open(self._aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        self._make_room = make_room
        self._held: list[bytes] = []
        self._size = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        """Hold data until the next ``flush``."""
        copied = bytes(data)
        self._held.append(copied)
        self._size += len(copied)
        return len(copied)

    def tell(self) -> int:
        """Where the next byte goes."""
        return self._size

    def readable(self) -> bool:
        """No."""
        return False

    def writable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """No."""
        return False

    def flush(self) -> None:
        """Nothing: see ``flush_to_disk``. Libraries flush where a disk's refusal would harm."""

    def close(self) -> None:
        """Nothing more will be written by the library."""
        self.closed = True

    def flush_to_disk(self) -> None:
        """Give what is held to the disk. Raises OSError when it does not take it."""
        data, self._held = memoryview(b"".join(self._held)), []
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except OSError as error:
                if not self._make_room(error):
                    self._held.insert(0, bytes(data))
                    raise

    def discard(self) -> None:
        """Leave no unfinished file behind."""
        self._close()
        self._aside.unlink(missing_ok=True)

    def commit(self) -> None:
        """Write all, sync it, and give the file its name. Raises OSError."""
        try:
            self.flush_to_disk()
            os.fsync(self._fd)
        finally:
            self._close()
        self._aside.replace(self._path)
        sync_folder(self._path.parent)

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
