"""Leave for context that is not complete: whose, how much of it, and handed out as what."""

from collections.abc import Iterator
from typing import Final

from s2l.serving_adapter.realtime.claim import Claim, Kind, Leave
from s2l.serving_adapter.realtime.claims import Claims
from s2l.serving_adapter.realtime.engine_work import EngineWork
from s2l.serving_adapter.realtime.prefill_mode import PrefillMode
from s2l.serving_adapter.realtime.reservations import Reservations

MAX_MISSES: Final = 8
"""So many held-back contexts are looked at in vain before the rest is taken to have no room too."""


class EarlyLeaves:
    """Finds leave in room that nobody uses, by the rules of ``mode``; ``warms`` says whether
    ordinary requests may leave context in the prefix cache."""

    def __init__(
        self,
        claims: Claims,
        reservations: Reservations,
        work: EngineWork,
        mode: PrefillMode,
        *,
        warms: bool,
    ) -> None:
        self._claims = claims
        self._reservations = reservations
        self._work = work
        self._session_blocks = int(mode.session_share * reservations.ledger.capacity)
        self._max_sessions = int(mode.session_share * reservations.max_open)
        self._warms = warms

    def __iter__(self) -> Iterator[tuple[Claim, Leave]]:
        """Who can be given what, one after the other: to be given before the next is asked for."""
        misses = 0
        for claim in sorted(self._claims.early, key=_promise):
            room = self._work.early_room()
            if room == 0 or misses == MAX_MISSES:
                return
            leave = self._leave(claim, room)
            if leave is None:
                misses += 1
            else:
                yield claim, leave

    def _leave(self, claim: Claim, room: int) -> Leave | None:
        ask, reservations = claim.ask, self._reservations
        assert ask is not None
        known = reservations.known_tokens(claim, ask)
        end = max(ask.start + 1, min(ask.end, known + room))
        more = reservations.more_blocks(claim, end) - claim.holding.warm
        kind = self._kind(claim, more)
        if kind is None or more > reservations.ledger.unused or claim.evicted:
            return None
        return Leave(kind, end, max(0, end - known), ask.start, reservations.warm_tokens(claim))

    def _kind(self, claim: Claim, more: int) -> Kind | None:
        if claim.open:
            return Kind.SESSION
        ledger, opened = self._reservations.ledger, self._reservations.open
        fits = ledger.held + ledger.warm + more <= self._session_blocks
        if fits and opened < self._max_sessions:
            return Kind.SESSION
        return Kind.PREFIX if self._warms and opened < self._reservations.max_open else None


def grows(claim: Claim) -> bool:
    """Whether it asks for tokens that it never handed out."""
    return claim.ask is not None and claim.ask.end > claim.ask.kept


def _promise(claim: Claim) -> tuple[bool, int, int]:
    """Whose early prefill is done first: what is new before what was lost, what was never replaced
    before what may be replaced again, then the oldest."""
    return not grows(claim), claim.changes, claim.number
