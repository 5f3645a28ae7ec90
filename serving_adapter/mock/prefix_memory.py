"""What the mock's Realtime side finds again of prompts that it computed before."""

from collections.abc import Sequence

from s2l.serving_adapter.mock.kv_cache import block_keys
from s2l.serving_adapter.mock.lru_set import LruSet


class PrefixMemory:
    """The full blocks of past prompts by what they hold, so many of them: the least recently used
    are forgotten first."""

    def __init__(self, capacity: int, block_size: int) -> None:
        self._blocks = capacity // block_size
        self._block_size = block_size
        self._known = LruSet()

    def find(self, tokens: Sequence[int], salt: str) -> int:
        """How many tokens at the beginning are known: whole blocks, and never all of them, as it
        takes one token to know the next."""
        if not self._known:
            return 0
        keys = block_keys(tokens[: len(tokens) - 1], self._block_size, salt)
        found = next((i for i, key in enumerate(keys) if key not in self._known), len(keys))
        for key in keys[:found]:
            self._known.use(key)
        return found * self._block_size

    def add(self, tokens: Sequence[int], salt: str) -> None:
        """These were computed."""
        for key in reversed(block_keys(tokens, self._block_size, salt)):
            self._known.use(key)
        while len(self._known) > self._blocks:
            self._known.pop_oldest()

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()
