"""One process at a time, wherever it was started."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(lock: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Wait until no other process is in such a block with this file, which is made and stays.

    What the block makes may be there when it begins: another process made it meanwhile.
    ``on_wait`` is called once, where there is another one to wait for. The system lets go of the
    lock of a process that dies.

    Raises:
        OSError: the file cannot be made.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
