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

from s2l.serving_adapter.realtime import metrics
from s2l.serving_adapter.realtime.claim import Ask, Claim, Kind, Leave
from s2l.serving_adapter.realtime.early_gate import Gate, OpenGate
from s2l.serving_adapter.realtime.kv_ledger import KvLedger
from s2l.serving_adapter.realtime.prefill_mode import prefill_mode
from s2l.serving_adapter.realtime.watchdog import WATCHDOG_S, Watchdog

ANSWER_ROOM: Final = 256
MAX_MISSES: Final = 8
"""So many held-back contexts are looked at in vain before the rest is taken to have no room too."""


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
        self._ledger = KvLedger(capacity, block_size)
        self._max_open = max_sessions
        self._max_waiting = max_waiting
        self._session_blocks = int(mode.session_share * self._ledger.capacity)
        self._max_early_sessions = int(mode.session_share * max_sessions)
        self._warms = mode.warms and (prefix_cache or prefill == "prefix")
        self._prefix_cache = prefix_cache
        self._gate = gate or OpenGate()
        self._others_wait_s = others_wait_s
        self._watchdog = Watchdog(self, bound_s=watchdog_s)
        self._watchdog_s = watchdog_s
        self._blocked_s: float | None = None
        self._numbers = 0
        self._claims: set[Claim] = set()
        self._open = 0
        self._urgent = 0
        self._answer_tokens = 0  # to prefill of complete prompts that are in the engine
        self._complete: dict[Claim, None] = {}  # wait for leave, in the order of completion
        self._early: dict[Claim, None] = {}
        self._idle: dict[Claim, None] = {}  # hold a session of which nothing is in the engine

    @property
    def waiting(self) -> int:
        """Prompts that wait for leave."""
        return len(self._complete) + len(self._early)

    @property
    def free_tokens(self) -> int:
        """Room that no open request holds."""
        return self._ledger.free * self._ledger.block_size

    @property
    def open_requests(self) -> int:
        """Engine requests that are open or were given leave."""
        return self._open

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
            claim.moved_s = asyncio.get_running_loop().time()
        claim.ask = ask
        if not claim.open and ask.kept < self._warm_tokens(claim):
            claim.changes += 1
            self._ledger.close(claim.holding, ask.kept)
        if ask.answer_tokens is None:
            self._early[claim] = None
        else:
            self._early.pop(claim, None)
            self._complete.setdefault(claim)
            self._set_urgent(claim, True)
        self.grant()

    def withdraw(self, claim: Claim) -> None:
        """What was asked is out of date: a leave that was given is given back unused."""
        claim.ask = None
        self._early.pop(claim, None)
        if (leave := claim.leave) is None:
            return
        claim.leave = None
        self._ended(claim, leave, None)
        if leave.start:
            self._ledger.hold(claim.holding, leave.start)
            self._idle[claim] = None
        else:
            self._close(claim, leave.warm_tokens)
        self.grant()

    def prefilled(self, claim: Claim, cached_tokens: int) -> None:
        """The early chunk that the claim had leave for is done; its request found so many tokens in
        the prefix cache."""
        leave, claim.leave = claim.leave, None
        assert leave is not None
        now_s = asyncio.get_running_loop().time()
        # A chunk of which more was there than was known says nothing of the engine's speed.
        as_known = leave.start > 0 or cached_tokens <= leave.end - leave.tokens
        self._ended(claim, leave, now_s - claim.moved_s if as_known else None)
        claim.moved_s = now_s
        if leave.kind is Kind.SESSION:
            self._idle[claim] = None
        self.grant()

    def answered(self, claim: Claim, tokens: int) -> None:
        """The answer came so far that prompt and answer are ``tokens`` together."""
        claim.moved_s = asyncio.get_running_loop().time()
        if self._ledger.blocks(tokens + 1) > claim.holding.held:
            self._ledger.hold(claim.holding, tokens + 1)
            self._evict_down_to(0)
        if claim.urgent:
            self._set_urgent(claim, False)
            self._answer_prefilled(claim)
            self.grant()

    def closed(self, claim: Claim, tokens: int) -> None:
        """The claim's engine request, which held ``tokens``, is over and its blocks are free."""
        leave, claim.leave, claim.ask = claim.leave, None, None
        if leave is not None:
            self._ended(claim, leave, None)
        self._early.pop(claim, None)
        if claim.open:
            self._close(claim, tokens if self._prefix_cache else 0)
        self.grant()

    def release(self, claim: Claim) -> None:
        """The prompt is over."""
        self.closed(claim, 0)
        self._ledger.cool(claim.holding)
        self._claims.discard(claim)
        self._complete.pop(claim, None)
        self._set_urgent(claim, False)
        self.grant()

    def grant(self) -> None:
        """Give leave to whom it can be given: complete prompts in their order, then the others."""
        for claim in list(self._complete):
            if claim.ask is None or claim.evicted or not self._grant_answer(claim, claim.ask):
                return
        if self._early and not self._is_blocked():
            self._grant_early()

    def has_claims(self) -> bool:
        """Whether there is anything to watch."""
        return bool(self._claims)

    def stalled(self, before_s: float, bound_s: float) -> bool:
        """Whether nothing that is in the engine advanced since then, or a request of another door
        waits for longer. What does advance ends, and then makes room by itself."""
        moved_s = max((claim.moved_s for claim in self._claims if claim.leave), default=before_s)
        return moved_s < before_s or (self._others_wait_s() or 0.0) > bound_s

    def held_back(self, before_s: float) -> bool:
        """Whether context that grew finds no room since then."""
        waits = (c for c in self._early if _grows(c) and c.moved_s < before_s)
        return not self._urgent and self._gate.room(False) > 0 and any(waits)

    def unblock(self, before_s: float) -> None:
        """Evict the least useful session that waits for its client; where none does, take back one
        whose chunk stands still in the engine since then. There is less room than was counted, so
        early prefill waits until things have moved for a while."""
        self._blocked_s = asyncio.get_running_loop().time()
        if (victim := self._least_useful()) is not None:
            self._evict(victim, "unblock")
        elif standing := [c for c in self._claims if _holds_still(c, before_s)]:
            self._evict(min(standing, key=lambda claim: (claim.urgent, -claim.number)), "unblock")

    def turn_over(self, before_s: float) -> None:
        """Give up what is kept for the context that did not grow for longest, if since then."""
        kept = [c for c in self._claims if c in self._idle or (not c.open and c.holding.warm)]
        oldest = min(kept, key=lambda claim: claim.moved_s, default=None)
        if oldest is None or oldest.moved_s >= before_s or oldest in self._complete:
            return
        if oldest.open:
            self._evict(oldest, "turn_over")
        else:
            self._ledger.cool(oldest.holding)
            self.grant()

    def _grant_answer(self, claim: Claim, ask: Ask) -> bool:
        assert ask.answer_tokens is not None
        tokens = ask.end + min(ask.answer_tokens, ANSWER_ROOM)
        more = self._ledger.blocks(tokens) - claim.holding.held
        alone = self._open == int(claim.open)
        if alone or (more <= self._ledger.free and self._open - claim.open < self._max_open):
            work = ask.end - self._known(claim, ask)
            leave = Leave(Kind.ANSWER, ask.end, work, ask.start, self._warm_tokens(claim))
            self._give(claim, leave, tokens)
            return True
        if self._gate.busy(self._answer_tokens):
            return False
        if self._open - claim.open >= self._max_open and not any(c.evicted for c in self._idle):
            if (victim := self._least_useful(claim)) is not None:
                self._evict(victim, "make_room")
        else:
            self._evict_down_to(more, claim)
        return False

    def _evict_down_to(self, blocks: int, head: Claim | None = None) -> None:
        """Evict waiting sessions until so many blocks are free, if that can be reached."""
        coming = sum(claim.holding.held for claim in self._idle if claim.evicted)
        missing = blocks - self._ledger.free - coming
        victims = [claim for claim in self._idle if not claim.evicted and claim is not head]
        if missing > sum(claim.holding.held for claim in victims):
            return
        for victim in sorted(victims, key=self._usefulness):
            if missing <= 0:
                return
            missing -= victim.holding.held
            self._evict(victim, "make_room")

    def _least_useful(self, head: Claim | None = None) -> Claim | None:
        victims = (claim for claim in self._idle if not claim.evicted and claim is not head)
        return min(victims, key=self._usefulness, default=None)

    def _is_blocked(self) -> bool:
        """Whether the watchdog had to act a short time ago."""
        now_s = asyncio.get_running_loop().time()
        return self._blocked_s is not None and now_s - self._blocked_s < self._watchdog_s

    def _usefulness(self, claim: Claim) -> tuple[bool, int]:
        """Complete prompts last; before them, those that lost the least."""
        return claim in self._complete, claim.holding.held

    def _evict(self, claim: Claim, action: str) -> None:
        metrics.WATCHDOG.labels(action).inc()
        claim.evicted = True
        claim.wake()

    def _grant_early(self) -> None:
        misses = 0
        for claim in sorted(self._early, key=_promise):
            room = self._gate.room(self._urgent > 0)
            if room == 0 or misses == MAX_MISSES:
                return
            leave = self._early_leave(claim, room)
            if leave is None:
                misses += 1
            else:
                self._give(claim, leave, leave.end)

    def _early_leave(self, claim: Claim, room: int) -> Leave | None:
        assert claim.ask is not None
        ledger, warm_tokens = self._ledger, self._warm_tokens(claim)
        known = self._known(claim, claim.ask)
        end = max(claim.ask.start + 1, min(claim.ask.end, known + room))
        more = ledger.blocks(end) - claim.holding.held - claim.holding.warm
        kind = self._early_kind(claim, more)
        if kind is None or more > ledger.unused or claim.evicted:
            return None
        return Leave(kind, end, max(0, end - known), claim.ask.start, warm_tokens)

    def _early_kind(self, claim: Claim, more: int) -> Kind | None:
        if claim.open:
            return Kind.SESSION
        used = self._ledger.held + self._ledger.warm + more
        if used <= self._session_blocks and self._open < self._max_early_sessions:
            return Kind.SESSION
        return Kind.PREFIX if self._warms and self._open < self._max_open else None

    def _give(self, claim: Claim, leave: Leave, tokens: int) -> None:
        self._ledger.hold(claim.holding, tokens)
        self._open += not claim.open
        claim.open, claim.ask, claim.leave = True, None, leave
        for queue in (self._idle, self._early, self._complete):
            queue.pop(claim, None)
        if leave.kind is Kind.ANSWER:
            claim.answer_tokens = leave.tokens
            self._answer_tokens += leave.tokens
        else:
            self._gate.started(leave.tokens)
        claim.moved_s = asyncio.get_running_loop().time()
        claim.cold = False
        claim.wake()

    def _ended(self, claim: Claim, leave: Leave, seconds: float | None) -> None:
        self._answer_prefilled(claim)
        if leave.kind is not Kind.ANSWER:
            self._gate.ended(leave.tokens, seconds)

    def _answer_prefilled(self, claim: Claim) -> None:
        self._answer_tokens -= claim.answer_tokens
        claim.answer_tokens = 0

    def _close(self, claim: Claim, warm_tokens: int) -> None:
        self._ledger.close(claim.holding, warm_tokens)
        self._open -= 1
        claim.cold = claim.evicted and not self._prefix_cache
        claim.open = claim.evicted = False
        self._idle.pop(claim, None)

    def _known(self, claim: Claim, ask: Ask) -> int:
        """Tokens that the engine need not compute again, as far as is known."""
        return max(ask.start, min(self._warm_tokens(claim), ask.kept))

    def _warm_tokens(self, claim: Claim) -> int:
        return claim.holding.warm * self._ledger.block_size

    def _set_urgent(self, claim: Claim, urgent: bool) -> None:
        self._urgent += urgent - claim.urgent
        claim.urgent = urgent


def _promise(claim: Claim) -> tuple[bool, int, int]:
    """Whose early prefill is done first: what is new before what was lost, what was never replaced
    before what may be replaced again, then the oldest."""
    return not _grows(claim), claim.changes, claim.number


def _grows(claim: Claim) -> bool:
    """Whether it asks for tokens that it never handed out."""
    return claim.ask is not None and claim.ask.end > claim.ask.kept


def _holds_still(claim: Claim, before_s: float) -> bool:
    """Whether it is a session with a chunk in the engine that did not advance since then."""
    in_engine = claim.leave is not None and claim.leave.start > 0 and not claim.evicted
    answers = claim.leave is not None and claim.leave.kind is Kind.ANSWER and not claim.urgent
    return in_engine and not answers and claim.moved_s < before_s
