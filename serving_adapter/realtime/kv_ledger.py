"""Who has how much of the KV cache, in blocks, as an engine with paged caches counts it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(eq=False, slots=True)
class Holding:
    """One prompt's blocks: ``held`` by its open request, ``warm`` ones left by those before it.

    A request that ends leaves its full blocks in the prefix cache, where they are found again until
    their room is needed: they take nothing from anybody. ``reused`` is called when it was.
    """

    reused: Callable[[], None]
    held: int = 0
    warm: int = 0


class KvLedger:
    """The blocks of a cache of ``capacity_tokens``, counted as if no two prompts shared any."""

    def __init__(self, capacity_tokens: int, block_size: int) -> None:
        self.block_size = block_size
        self.capacity = capacity_tokens // block_size
        self.held = 0
        self.warm = 0
        """Blocks that past requests left and nobody holds."""
        self._warm: dict[Holding, None] = {}  # in the order in which their room will be reused

    @property
    def free(self) -> int:
        """Blocks that no open request holds."""
        return self.capacity - self.held

    @property
    def unused(self) -> int:
        """Blocks that are neither held nor warm; negative where more is held than there is."""
        return self.free - self.warm

    def blocks(self, tokens: int) -> int:
        """Blocks that so many tokens take."""
        return -(-tokens // self.block_size)

    def hold(self, holding: Holding, tokens: int) -> None:
        """The open request has room for ``tokens`` now; what was warm of the prompt is in it."""
        more = self.blocks(tokens) - holding.held
        holding.held += more
        self.held += more
        self.cool(holding)
        self._reuse()

    def close(self, holding: Holding, warm_tokens: int) -> None:
        """The request is over; the full blocks of its first tokens stay warm."""
        self.held -= holding.held
        holding.held = 0
        self.cool(holding)
        if warm_blocks := warm_tokens // self.block_size:
            holding.warm = warm_blocks
            self.warm += warm_blocks
            self._warm[holding] = None
        self._reuse()

    def cool(self, holding: Holding) -> None:
        """Forget what was warm of this prompt."""
        self.warm -= holding.warm
        holding.warm = 0
        self._warm.pop(holding, None)

    def _reuse(self) -> None:
        while self._warm and self.unused < 0:
            holding = next(iter(self._warm))
            self.cool(holding)
            holding.reused()
