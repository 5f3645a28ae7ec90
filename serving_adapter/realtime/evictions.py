"""Which waiting sessions lose their room to prompts that can be answered."""

from s2l.serving_adapter.realtime import metrics
from s2l.serving_adapter.realtime.claim import Claim
from s2l.serving_adapter.realtime.claims import Claims
from s2l.serving_adapter.realtime.reservations import Reservations


class Evictions:
    """Asks sessions of which nothing is in the engine to abort their requests, the least useful
    first. Their room is free once they did so."""

    def __init__(self, claims: Claims, reservations: Reservations) -> None:
        self._claims = claims
        self._reservations = reservations

    def evict(self, claim: Claim, action: str) -> None:
        """Ask this one; ``action`` is what it is counted as."""
        metrics.WATCHDOG.labels(action).inc()
        claim.evicted = True
        claim.wake()

    def make_room(self, blocks: int) -> None:
        """Evict sessions until so many blocks are free, if that can be reached."""
        self._free(blocks, None)

    def make_room_for(self, head: Claim, blocks: int) -> None:
        """The same for the claim that is first in line, which may need another's place instead."""
        coming = any(claim.evicted for claim in self._claims.idle)
        if self._reservations.all_places_taken(head) and not coming:
            if (victim := self.least_useful(head)) is not None:
                self.evict(victim, "make_room")
        else:
            self._free(blocks, head)

    def least_useful(self, head: Claim | None = None) -> Claim | None:
        """The session to evict first, None where there is none."""
        return min(self._victims(head), key=self._usefulness, default=None)

    def _free(self, blocks: int, head: Claim | None) -> None:
        coming = sum(claim.holding.held for claim in self._claims.idle if claim.evicted)
        missing = blocks - self._reservations.ledger.free - coming
        victims = self._victims(head)
        if missing > sum(claim.holding.held for claim in victims):
            return
        for victim in sorted(victims, key=self._usefulness):
            if missing <= 0:
                return
            missing -= victim.holding.held
            self.evict(victim, "make_room")

    def _victims(self, head: Claim | None) -> list[Claim]:
        return [claim for claim in self._claims.idle if not claim.evicted and claim is not head]

    def _usefulness(self, claim: Claim) -> tuple[bool, int]:
        """Complete prompts last; before them, those that lost the least."""
        return claim in self._claims.complete, claim.holding.held
