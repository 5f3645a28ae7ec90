"""The mock's KV cache: so many blocks, and the full ones of prompts found again by what they hold.

As in paged engines, a request holds all blocks that it can still need from its start to its end. A
block that nobody holds keeps what it has until its room is needed, the least recently used first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from s2l.serving_adapter.mock.lru_set import LruSet


def block_keys(tokens: Sequence[object], block_size: int, salt: str) -> list[int]:
    """A key for each full block: equal for equal tokens after equal blocks under the same salt."""
    key = hash(("salt", salt))
    keys = []
    for start in range(0, len(tokens) - block_size + 1, block_size):
        key = hash((key, *tokens[start : start + block_size]))
        keys.append(key)
    return keys


@dataclass(slots=True)
class Holding:
    """The blocks of one running request: ``shared`` by key, ``own`` by number."""

    cached_blocks: int
    own: int
    keys: Sequence[int]
    shared: list[int] = field(default_factory=list)


class KvCache:
    """``capacity`` tokens in blocks; without ``reuse`` nothing is found again."""

    def __init__(self, capacity: int, *, block_size: int = 16, reuse: bool = True) -> None:
        self.block_size = block_size
        self.reuse = reuse
        self.total_blocks = capacity // block_size
        self._never_used = self.total_blocks
        self._holders: dict[int, int] = {}
        self._idle = LruSet()

    @property
    def used_blocks(self) -> int:
        """Blocks that running requests hold."""
        return self.total_blocks - self._never_used - len(self._idle)

    def blocks(self, tokens: int) -> int:
        """Blocks that so many tokens take."""
        return -(-tokens // self.block_size)

    def hold(self, keys: Sequence[int], prompt_tokens: int, total_tokens: int) -> Holding | None:
        """Blocks for a request, None where there is not enough room. At least one token of the
        prompt is always computed, as it takes one to know the next."""
        reusable = keys[: (prompt_tokens - 1) // self.block_size] if self.reuse else ()
        matched: list[int] = []
        for key in reusable:
            if key not in self._holders and key not in self._idle:
                break
            matched.append(key)
        own = self.blocks(total_tokens) - len(matched)
        idle_matched = sum(1 for key in matched if key in self._idle)
        if own > self._never_used + len(self._idle) - idle_matched:
            return None
        for key in matched:
            self._holders[key] = self._holders.get(key, 0) + 1
            self._idle.discard(key)
        self._take(own)
        return Holding(len(matched), own, keys if self.reuse else (), matched)

    def prefilled(self, holding: Holding, tokens: int) -> None:
        """The request's first ``tokens`` are computed: their full blocks can be found by others."""
        for key in holding.keys[holding.cached_blocks : tokens // self.block_size]:
            if key not in self._holders and key not in self._idle:
                self._holders[key] = 1
                holding.shared.append(key)
                holding.own -= 1

    def release(self, holding: Holding) -> None:
        """The request is over: its own blocks are empty, what can be found again stays."""
        self._never_used += holding.own
        # The ends of prompts go first when room is needed: beginnings are what others share.
        for key in reversed(holding.shared):
            self._holders[key] -= 1
            if not self._holders[key]:
                del self._holders[key]
                self._idle.use(key)

    def clear(self) -> bool:
        """Forget all that can be found again; refused (False) while requests hold blocks."""
        if self.used_blocks:
            return False
        self._never_used += len(self._idle)
        self._idle.clear()
        return True

    def _take(self, blocks: int) -> None:
        for _ in range(blocks - self._never_used):
            self._idle.pop_oldest()
        self._never_used = max(0, self._never_used - blocks)
