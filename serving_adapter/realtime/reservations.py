"""What prompts have of one engine: room in its KV cache, and places among its open requests."""

from s2l.serving_adapter.realtime.claim import Ask, Claim
from s2l.serving_adapter.realtime.kv_ledger import KvLedger


class Reservations:
    """Counts what open requests hold and what was given leave. ``prefix_cache`` says whether the
    engine finds again what past requests left."""

    def __init__(self, ledger: KvLedger, max_open: int, *, prefix_cache: bool) -> None:
        self.ledger = ledger
        self.max_open = max_open
        self.open = 0
        """Engine requests that are open or were given leave."""
        self._prefix_cache = prefix_cache

    @property
    def free_tokens(self) -> int:
        """Room that no open request holds."""
        return self.ledger.free * self.ledger.block_size

    def more_blocks(self, claim: Claim, tokens: int) -> int:
        """Blocks that the claim's request needs for so many tokens besides those that it holds."""
        return self.ledger.blocks(tokens) - claim.holding.held

    def all_places_taken(self, claim: Claim) -> bool:
        """Whether other requests than the claim's are as many as there may be."""
        return self.open - claim.open >= self.max_open

    def is_alone(self, claim: Claim) -> bool:
        """Whether no other request is open."""
        return self.open == int(claim.open)

    def warm_tokens(self, claim: Claim) -> int:
        """Tokens that past requests of the claim left in the prefix cache."""
        return claim.holding.warm * self.ledger.block_size

    def known_tokens(self, claim: Claim, ask: Ask) -> int:
        """Tokens that the engine need not compute again, as far as is known."""
        return max(ask.start, min(self.warm_tokens(claim), ask.kept))

    def note_replaced(self, claim: Claim, ask: Ask) -> None:
        """Of what past requests left, only what is kept is of use."""
        if not claim.open and ask.kept < self.warm_tokens(claim):
            claim.changes += 1
            self.ledger.close(claim.holding, ask.kept)

    def reserve(self, claim: Claim, tokens: int) -> None:
        """The claim's request, open from now on, has room for so many tokens."""
        self.ledger.hold(claim.holding, tokens)
        self.open += not claim.open
        claim.open = True

    def grow(self, claim: Claim, tokens: int) -> bool:
        """An answer came so far; whether its request needs more room for it than it had."""
        if self.more_blocks(claim, tokens) <= 0:
            return False
        self.ledger.hold(claim.holding, tokens)
        return True

    def close(self, claim: Claim, tokens: int) -> None:
        """The claim's request is over, and left so many tokens if the engine keeps any."""
        self._end(claim, tokens if self._prefix_cache else 0)

    def give_back(self, claim: Claim, start: int, warm_tokens: int) -> None:
        """Leave was not used: it stands as it did when its request held ``start`` tokens, or was
        not open and ``warm_tokens`` were left."""
        if start:
            self.ledger.hold(claim.holding, start)
        else:
            self._end(claim, warm_tokens)

    def _end(self, claim: Claim, warm_tokens: int) -> None:
        self.ledger.close(claim.holding, warm_tokens)
        self.open -= 1
        claim.cold = claim.evicted and not self._prefix_cache
        claim.open = claim.evicted = False
