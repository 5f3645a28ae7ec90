"""What a worker has done, in memory that outlives its process."""

import mmap
import os
import sys
from dataclasses import dataclass
from typing import Final

HALF_BYTES: Final = 16 * 2**20
"""Room for what ends between two reports, some ten thousand requests; memory is taken as it is
filled."""
_HEAD_BYTES: Final = mmap.PAGESIZE
_BYTES: Final = _HEAD_BYTES + 2 * HALF_BYTES
_SECRET_BYTES: Final = 16
_STARTED, _USED = 2, 3
"""Words of the head: the secret takes the first two, the halves' sizes the last two."""


@dataclass(frozen=True, slots=True)
class JournalAddress:
    """Where another process of the same machine finds a journal; it is the one with the secret."""

    pid: int
    descriptor: int
    secret: bytes


class Journal:
    """Keeps each piece from when it is added until it has been fetched. Written by one thread, with
    no call of the system.

    A piece that does not fit is left out: it is lost if the process dies before it is fetched.
    """

    def __init__(self) -> None:
        self._secret = os.urandom(_SECRET_BYTES)
        self._descriptor = _anonymous_file()
        self._memory = mmap.mmap(self._descriptor, _BYTES)
        self._memory[:_SECRET_BYTES] = self._secret
        self._words = memoryview(self._memory)[:_HEAD_BYTES].cast("q")
        self._half = 0

    @property
    def address(self) -> JournalAddress | None:
        """None where the system has no memory of this kind."""
        if self._descriptor < 0:
            return None
        return JournalAddress(os.getpid(), self._descriptor, self._secret)

    def note_started(self, requests: int) -> None:
        """So many requests were started."""
        self._words[_STARTED] = requests

    def add(self, piece: bytes) -> None:
        """Keep it."""
        used = self._words[_USED + self._half]
        if used + len(piece) <= HALF_BYTES:
            begin = _HEAD_BYTES + self._half * HALF_BYTES + used
            self._memory[begin : begin + len(piece)] = piece
            self._words[_USED + self._half] = used + len(piece)

    def turn(self) -> None:
        """What was added so far is being fetched; what was there at the turn before has been."""
        self._half = 1 - self._half
        self._words[_USED + self._half] = 0

    def clear(self) -> None:
        """Begin anew."""
        self.note_started(0)
        self.turn()
        self.turn()


class JournalReader:
    """Another process's journal, to be read once that one is dead."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory

    @classmethod
    def at(cls, address: JournalAddress | None) -> "JournalReader | None":
        """Open it while its process lives; None where it is not to be seen from here."""
        if address is None:
            return None
        try:
            with open(f"/proc/{address.pid}/fd/{address.descriptor}", "rb") as file:
                memory = mmap.mmap(file.fileno(), _BYTES, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        return cls(memory) if memory[:_SECRET_BYTES] == address.secret else None

    @property
    def started(self) -> int:
        """How many requests it had started."""
        return self._word(_STARTED)

    def pieces(self) -> bytes:
        """All pieces that may not have been fetched, one after the other."""
        begins = (_HEAD_BYTES, _HEAD_BYTES + HALF_BYTES)
        return b"".join(
            self._memory[begin : begin + self._word(_USED + half)]
            for half, begin in enumerate(begins)
        )

    def _word(self, index: int) -> int:
        return int.from_bytes(self._memory[8 * index : 8 * index + 8], sys.byteorder)


def _anonymous_file() -> int:
    if sys.platform != "linux":
        return -1
    descriptor = os.memfd_create("s2l-journal")
    os.ftruncate(descriptor, _BYTES)
    return descriptor
