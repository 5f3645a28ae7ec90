"""Remembers ids by the million in little memory."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

import numpy as np
import numpy.typing as npt

_RECENT: Final = 65_536
_DIGEST_BYTES: Final = 16
_Digests = npt.NDArray[np.bytes_]


class IdSet:
    """A set of strings that only grows: 16 bytes for each, but for the latest.

    The latest ids are kept as they are; older ones as sorted 128-bit digests, which no two ids
    are expected to share before there are 2^64 of them.
    """

    def __init__(self) -> None:
        self._recent: set[str] = set()
        self._middle = _no_digests()
        self._old = _no_digests()

    def __contains__(self, one: str) -> bool:
        if one in self._recent:
            return True
        if len(self) == len(self._recent):
            return False
        digest = _digest(one)
        return _holds(self._middle, digest) or _holds(self._old, digest)

    def __len__(self) -> int:
        return len(self._recent) + len(self._middle) + len(self._old)

    def add(self, one: str) -> None:
        """Remember an id that is not in it yet."""
        self._recent.add(one)
        if len(self._recent) >= _RECENT:
            self._settle()

    def update(self, several: Iterable[str]) -> None:
        """Remember ids, known ones too."""
        for one in several:
            if one not in self:
                self.add(one)

    def _settle(self) -> None:
        """Two sorted arrays, so that few lookups are needed and the large one is rarely copied."""
        latest = np.array([_digest(one) for one in self._recent], dtype=f"S{_DIGEST_BYTES}")
        self._recent.clear()
        self._middle = np.sort(np.concatenate([self._middle, latest]))
        if len(self._middle) > max(8 * _RECENT, len(self._old) // 4):
            self._old = np.sort(np.concatenate([self._old, self._middle]), kind="stable")
            self._middle = _no_digests()


def _no_digests() -> _Digests:
    return np.empty(0, dtype=f"S{_DIGEST_BYTES}")


def _digest(one: str) -> bytes:
    """Never ends in a zero byte, which NumPy would drop: the last byte's lowest bit is set."""
    digest = blake2b(one.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
    return digest[:-1] + bytes([digest[-1] | 1])


def _holds(digests: _Digests, digest: bytes) -> bool:
    place = int(np.searchsorted(digests, np.bytes_(digest)))
    return place < len(digests) and bool(digests[place] == digest)
