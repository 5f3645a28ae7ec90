"""Which prompts may have the engine work for them, and when, so that whoever is ready can finish.

A session that has begun to prefill holds its KV blocks until it is answered, and engines do not
take them away: enough waiting sessions fill the cache with nothing able to run. So every chunk
needs leave before it is handed out, by what is really held, and this is kept true:

1. What open requests hold and what was given leave never exceeds the cache. So whatever is in the
   engine has all the blocks that it needs to end, and does end.
2. A complete prompt that waits for room gets it from sessions that wait for their clients: these
   are evicted, as many as it takes, as soon as the engine has not enough to do for complete prompts
   that have room. So the first complete prompt in line waits only for what is in the engine, which
   ends by 1. No complete prompt is passed by a later one, and none that is being answered is ever
   evicted.
3. Context that is not complete gets leave only for room that nobody uses, and only while no
   complete prompt waits for room. It can be held back as long as that takes: when its prompt is
   complete, 2 applies.

Answers whose length is not known begin with room for ``ANSWER_ROOM`` tokens and grow beyond it into
the room of sessions that wait; when there are none left the engine's own preemption, which works
among running requests, decides. Requests that come by other doors are not counted: the watchdog
makes room when something stands still all the same.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from s2l.serving_adapter.realtime.claim import Ask, Claim, Kind, Leave
from s2l.serving_adapter.realtime.claims import Claims
from s2l.serving_adapter.realtime.early_gate import Gate, OpenGate
from s2l.serving_adapter.realtime.early_leaves import EarlyLeaves
from s2l.serving_adapter.realtime.engine_work import EngineWork
from s2l.serving_adapter.realtime.evictions import Evictions
from s2l.serving_adapter.realtime.kv_ledger import KvLedger
from s2l.serving_adapter.realtime.prefill_mode import prefill_mode
from s2l.serving_adapter.realtime.reservations import Reservations
from s2l.serving_adapter.realtime.standstill import Standstill
from s2l.serving_adapter.realtime.watchdog import WATCHDOG_S, Watchdog

ANSWER_ROOM: Final = 256


class Overloaded(Exception):
    """So many prompts wait that another one is refused."""


class Admission:
    """Gives leave over ``capacity`` tokens of KV cache and ``max_sessions`` open requests.

    ``prefill`` names the mode (``prefill_mode.py``); ``prefix_cache`` says whether the engine finds
    again what past requests left: without it, auto holds back what it has no session for.
    ``others_wait_s``: how long the first of the requests that came by other doors waits for a
    token, None when none does.
    """

    def __init__(
        self,
        capacity: int,
        *,
        block_size: int,
        max_sessions: int,
        max_waiting: int = 1024,
        prefill: str = "auto",
        prefix_cache: bool = True,
        gate: Gate | None = None,
        others_wait_s: Callable[[], float | None] = lambda: None,
        watchdog_s: float = WATCHDOG_S,
    ) -> None:
        mode = prefill_mode(prefill)
        self.prefill = prefill
        self._max_waiting = max_waiting
        self._watchdog_s = watchdog_s
        self._numbers = 0
        ledger = KvLedger(capacity, block_size)
        self._claims = claims = Claims()
        self._reservations = Reservations(ledger, max_sessions, prefix_cache=prefix_cache)
        self._work = work = EngineWork(gate or OpenGate())
        self._evictions = evictions = Evictions(claims, self._reservations)
        warms = mode.warms and (prefix_cache or prefill == "prefix")
        self._early_leaves = EarlyLeaves(claims, self._reservations, work, mode, warms=warms)
        self._standstill = Standstill(
            claims, ledger, work, evictions, others_wait_s=others_wait_s, grant=self.grant
        )
        self._watchdog = Watchdog(self._standstill, bound_s=watchdog_s)

    @property
    def waiting(self) -> int:
        """Prompts that wait for leave."""
        return self._claims.waiting

    @property
    def free_tokens(self) -> int:
        """Room that no open request holds."""
        return self._reservations.free_tokens

    @property
    def open_requests(self) -> int:
        """Engine requests that are open or were given leave."""
        return self._reservations.open

    def claim(self, wake: Callable[[], None]) -> Claim:
        """A claim for one prompt; to be released.

        Raises:
            Overloaded: too many prompts wait already.
        """
        if self.waiting >= self._max_waiting:
            raise Overloaded(f"{self.waiting} prompts wait for the engine; try again later")
        self._numbers += 1
        claim = Claim(self._numbers, wake)
        self._claims.add(claim)
        self._watchdog.start()
        return claim

    def ask(self, claim: Claim, ask: Ask) -> None:
        """Ask for leave, or ask for something else than before; ``claim.leave`` is the answer."""
        if claim.ask is None:
            claim.moved_s = _now_s()
        claim.ask = ask
        self._reservations.note_replaced(claim, ask)
        self._claims.queue(claim)
        if ask.answer_tokens is not None:
            self._work.set_urgent(claim, True)
        self.grant()

    def withdraw(self, claim: Claim) -> None:
        """What was asked is out of date: a leave that was given is given back unused."""
        claim.ask = None
        self._claims.early.pop(claim, None)
        if (leave := claim.leave) is None:
            return
        claim.leave = None
        self._work.ended(claim, leave)
        self._reservations.give_back(claim, leave.start, leave.warm_tokens)
        if claim.open:
            self._claims.idle[claim] = None
        self.grant()

    def prefilled(self, claim: Claim, cached_tokens: int) -> None:
        """The early chunk that the claim had leave for is done; its request found so many tokens in
        the prefix cache."""
        leave, claim.leave = claim.leave, None
        assert leave is not None
        now_s = _now_s()
        # A chunk of which more was there than was known says nothing of the engine's speed.
        as_known = leave.start > 0 or cached_tokens <= leave.end - leave.tokens
        self._work.ended(claim, leave, now_s - claim.moved_s if as_known else None)
        claim.moved_s = now_s
        if leave.kind is Kind.SESSION:
            self._claims.idle[claim] = None
        self.grant()

    def answered(self, claim: Claim, tokens: int) -> None:
        """The answer came so far that prompt and answer are ``tokens`` together."""
        claim.moved_s = _now_s()
        if self._reservations.grow(claim, tokens + 1):
            self._evictions.make_room(0)
        if claim.urgent:
            self._work.set_urgent(claim, False)
            self._work.answer_prefilled(claim)
            self.grant()

    def closed(self, claim: Claim, tokens: int) -> None:
        """The claim's engine request, which held ``tokens``, is over and its blocks are free."""
        leave, claim.leave, claim.ask = claim.leave, None, None
        if leave is not None:
            self._work.ended(claim, leave)
        self._claims.early.pop(claim, None)
        if claim.open:
            self._reservations.close(claim, tokens)
            self._claims.idle.pop(claim, None)
        self.grant()

    def release(self, claim: Claim) -> None:
        """The prompt is over."""
        self.closed(claim, 0)
        self._reservations.ledger.cool(claim.holding)
        self._claims.remove(claim)
        self._work.set_urgent(claim, False)
        self.grant()

    def grant(self) -> None:
        """Give leave to whom it can be given: complete prompts in their order, then the others."""
        for claim in list(self._claims.complete):
            if claim.ask is None or claim.evicted or not self._grant_answer(claim, claim.ask):
                return
        if self._claims.early and not self._standstill.unblocked_within(self._watchdog_s):
            for claim, leave in self._early_leaves:
                self._give(claim, leave, leave.end)

    def _grant_answer(self, claim: Claim, ask: Ask) -> bool:
        assert ask.answer_tokens is not None
        held = self._reservations
        tokens = ask.end + min(ask.answer_tokens, ANSWER_ROOM)
        more = held.more_blocks(claim, tokens)
        fits = more <= held.ledger.free and not held.all_places_taken(claim)
        if fits or held.is_alone(claim):
            work = ask.end - held.known_tokens(claim, ask)
            leave = Leave(Kind.ANSWER, ask.end, work, ask.start, held.warm_tokens(claim))
            self._give(claim, leave, tokens)
            return True
        if not self._work.busy():
            self._evictions.make_room_for(claim, more)
        return False

    def _give(self, claim: Claim, leave: Leave, tokens: int) -> None:
        self._reservations.reserve(claim, tokens)
        self._work.started(claim, leave)
        self._claims.give(claim, leave, _now_s())


def _now_s() -> float:
    return asyncio.get_running_loop().time()
