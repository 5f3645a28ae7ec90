"""What the watchdog sees of the prompts of one engine, and what it can do for them."""

import asyncio
from collections.abc import Callable

from s2l.serving_adapter.realtime.claim import Claim, Kind
from s2l.serving_adapter.realtime.claims import Claims
from s2l.serving_adapter.realtime.early_leaves import grows
from s2l.serving_adapter.realtime.engine_work import EngineWork
from s2l.serving_adapter.realtime.evictions import Evictions
from s2l.serving_adapter.realtime.kv_ledger import KvLedger


class Standstill:
    """Tells what does not move, and makes room. ``others_wait_s`` is how long the first of the
    requests that came by other doors waits for a token, None when none does; ``grant`` gives leave
    to whom it can be given."""

    def __init__(
        self,
        claims: Claims,
        ledger: KvLedger,
        work: EngineWork,
        evictions: Evictions,
        *,
        others_wait_s: Callable[[], float | None],
        grant: Callable[[], None],
    ) -> None:
        self._claims = claims
        self._ledger = ledger
        self._work = work
        self._evictions = evictions
        self._others_wait_s = others_wait_s
        self.grant = grant
        self._unblocked_s: float | None = None

    def unblocked_within(self, seconds: float) -> bool:
        """Whether it had to make room so short a time ago."""
        now_s = asyncio.get_running_loop().time()
        return self._unblocked_s is not None and now_s - self._unblocked_s < seconds

    def has_claims(self) -> bool:
        """Whether there is anything to watch."""
        return bool(self._claims.everyone)

    def stalled(self, before_s: float, bound_s: float) -> bool:
        """Whether nothing that is in the engine advanced since then, or a request of another door
        waits for longer. What does advance ends, and then makes room by itself."""
        in_engine = (claim.moved_s for claim in self._claims.everyone if claim.leave)
        moved_s = max(in_engine, default=before_s)
        return moved_s < before_s or (self._others_wait_s() or 0.0) > bound_s

    def held_back(self, before_s: float) -> bool:
        """Whether context that grew finds no room since then."""
        waits = (c for c in self._claims.early if grows(c) and c.moved_s < before_s)
        return self._work.takes_early() and any(waits)

    def unblock(self, before_s: float) -> None:
        """Evict the least useful session that waits for its client; where none does, take back one
        whose chunk stands still in the engine since then. There is less room than was counted, so
        early prefill waits until things have moved for a while."""
        self._unblocked_s = asyncio.get_running_loop().time()
        victim = self._evictions.least_useful()
        if victim is None:
            standing = [c for c in self._claims.everyone if _holds_still(c, before_s)]
            victim = min(standing, key=lambda c: (c.urgent, -c.number), default=None)
        if victim is not None:
            self._evictions.evict(victim, "unblock")

    def turn_over(self, before_s: float) -> None:
        """Give up what is kept for the context that did not grow for longest, if since then."""
        claims = self._claims
        kept = [c for c in claims.everyone if c in claims.idle or (not c.open and c.holding.warm)]
        oldest = min(kept, key=lambda claim: claim.moved_s, default=None)
        if oldest is None or oldest.moved_s >= before_s or oldest in claims.complete:
            return
        if oldest.open:
            self._evictions.evict(oldest, "turn_over")
        else:
            self._ledger.cool(oldest.holding)
            self.grant()


def _holds_still(claim: Claim, before_s: float) -> bool:
    """Whether it is a session with a chunk in the engine that did not advance since then."""
    in_engine = claim.leave is not None and claim.leave.start > 0 and not claim.evicted
    answers = claim.leave is not None and claim.leave.kind is Kind.ANSWER and not claim.urgent
    return in_engine and not answers and claim.moved_s < before_s
