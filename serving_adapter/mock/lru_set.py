"""Keys in the order of their last use, of which there may be millions without a pause.

One dictionary of a million keys stops for a tenth of a second when it grows, and a server that
keeps time must not.
"""

from collections import OrderedDict
from heapq import heappop, heappush, heapreplace
from math import log2
from typing import Final

_SHARDS: Final = 256
_MASK: Final = 2**12 - 1
_SHARD_OF: Final = bytes(int(_SHARDS * log2(1 + i / (_MASK + 1))) for i in range(_MASK + 1))
"""By the key's last bits. The last shard gets twice the keys of the first, those between in equal
steps, so that no two of them grow at the same time."""


class LruSet:
    """Whole numbers, well mixed as hashes are."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove all."""
        self._shards: list[OrderedDict[int, int]] = [OrderedDict() for _ in range(_SHARDS)]
        self._uses = 0
        self._size = 0
        # A shard with keys is among these, with a use that is not after that of its oldest key.
        self._oldest: list[tuple[int, int]] = []
        self._queued = bytearray(_SHARDS)

    def __len__(self) -> int:
        return self._size

    def __contains__(self, key: int) -> bool:
        return key in self._shards[_SHARD_OF[key & _MASK]]

    def use(self, key: int) -> None:
        """Add it or, where it is in, make it the one that was used last."""
        number = _SHARD_OF[key & _MASK]
        shard = self._shards[number]
        self._uses += 1
        if key in shard:
            shard.move_to_end(key)
        else:
            self._size += 1
        shard[key] = self._uses
        if not self._queued[number]:
            self._queued[number] = 1
            heappush(self._oldest, (self._uses, number))

    def discard(self, key: int) -> None:
        """Remove it, if it is in."""
        if self._shards[_SHARD_OF[key & _MASK]].pop(key, None) is not None:
            self._size -= 1

    def pop_oldest(self) -> int:
        """Remove the one that was not used for longest.

        Raises:
            IndexError: there is none.
        """
        while True:
            used, number = self._oldest[0]
            shard = self._shards[number]
            key, last_use = next(iter(shard.items()), (0, 0))
            if not shard:
                heappop(self._oldest)
                self._queued[number] = 0
            elif used < last_use:
                heapreplace(self._oldest, (last_use, number))
            else:
                del shard[key]
                self._size -= 1
                return key
