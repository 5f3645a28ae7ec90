"""Leave to use the KV cache is given so that whoever is complete can finish."""

import asyncio
from collections.abc import Callable

import pytest

from s2l.serving_adapter.realtime.admission import ANSWER_ROOM, Admission, Overloaded
from s2l.serving_adapter.realtime.claim import Ask, Claim, Kind
from s2l.serving_adapter.realtime.early_gate import EarlyGate, OpenGate

BLOCK = 10


class Prompts:
    """Claims on one admission, moved by hand as prompts would move them."""

    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self.woken = 0

    def new(self) -> Claim:
        return self.admission.claim(self._wake)

    def _wake(self) -> None:
        self.woken += 1

    def early(self, claim: Claim, end: int, *, start: int = 0) -> Kind | None:
        """Ask to prefill up to ``end`` early, and have it done at once when leave is given."""
        self.admission.ask(claim, Ask(start, end, 0))
        if claim.leave is None:
            return None
        kind, held = claim.leave.kind, claim.leave.end
        self.admission.prefilled(claim, 0)
        if kind is Kind.PREFIX:
            self.admission.closed(claim, held)
        return kind

    def complete(self, claim: Claim, tokens: int, answer: int = 1, *, start: int = 0) -> bool:
        """Whether the claim has leave for its answer."""
        self.admission.ask(claim, Ask(start, tokens, 0, answer))
        return claim.leave is not None and claim.leave.kind is Kind.ANSWER


@pytest.fixture
async def prompts() -> Prompts:
    return Prompts(Admission(100, block_size=BLOCK, max_sessions=10))


def _admission(**options: object) -> Prompts:
    return Prompts(Admission(100, block_size=BLOCK, max_sessions=10, **options))  # type: ignore[arg-type]


async def test_auto_opens_sessions_warms_the_rest_and_then_holds_back(prompts: Prompts) -> None:
    kinds = [prompts.early(prompts.new(), 25) for _ in range(5)]
    # 3 blocks each: two sessions are 60 % of the cache, a third would be 90 % and so warms it.
    assert kinds == [Kind.SESSION, Kind.SESSION, Kind.PREFIX, None, None]
    assert (prompts.admission.free_tokens, prompts.admission.waiting) == (40, 2)


async def test_session_mode_fills_the_cache_with_sessions_and_holds_back() -> None:
    prompts = _admission(prefill="session")
    assert [prompts.early(prompts.new(), 30) for _ in range(4)] == [Kind.SESSION] * 3 + [None]


async def test_prefix_mode_opens_no_sessions() -> None:
    prompts = _admission(prefill="prefix")
    assert [prompts.early(prompts.new(), 30) for _ in range(4)] == [Kind.PREFIX] * 3 + [None]
    assert prompts.admission.free_tokens == 100


async def test_without_a_prefix_cache_auto_warms_nothing() -> None:
    prompts = _admission(prefix_cache=False)
    assert [prompts.early(prompts.new(), 40) for _ in range(2)] == [Kind.SESSION, None]


def test_an_unknown_mode_is_named_with_the_choices() -> None:
    with pytest.raises(ValueError, match="unknown prefill mode 'eager'; choose one of session, "):
        Admission(100, block_size=10, max_sessions=1, prefill="eager")


async def test_room_is_counted_in_whole_blocks(prompts: Prompts) -> None:
    prompts.early(prompts.new(), 11)
    assert prompts.admission.free_tokens == 80


async def test_a_complete_prompt_gets_the_room_of_waiting_sessions(prompts: Prompts) -> None:
    small, large, complete = prompts.new(), prompts.new(), prompts.new()
    prompts.early(small, 20)
    prompts.early(large, 40)
    assert not prompts.complete(complete, 49)
    # The one that loses the least goes, and no more than needed.
    assert (small.evicted, large.evicted) == (True, False)
    prompts.admission.closed(small, 20)
    assert complete.leave is not None
    assert prompts.admission.free_tokens == 10


async def test_what_is_being_answered_is_never_evicted(prompts: Prompts) -> None:
    answering, complete = prompts.new(), prompts.new()
    assert prompts.complete(answering, 59)
    prompts.admission.answered(answering, 60)
    assert not prompts.complete(complete, 59)
    assert not answering.evicted
    prompts.admission.closed(answering, 60)
    assert complete.leave is not None


async def test_complete_prompts_are_served_in_order_and_before_open_ones(prompts: Prompts) -> None:
    answering, large, small, early = (prompts.new() for _ in range(4))
    prompts.complete(answering, 59)
    assert not prompts.complete(large, 99)
    assert not prompts.complete(small, 9)
    assert prompts.early(early, 9) is None
    prompts.admission.release(answering)
    assert large.leave is not None
    assert small.leave is None
    prompts.admission.release(large)
    assert small.leave is not None
    assert early.leave is not None


async def test_complete_sessions_that_cannot_all_grow_yield_to_the_first(prompts: Prompts) -> None:
    prompts = _admission(prefill="session")
    first, second = prompts.new(), prompts.new()
    prompts.early(first, 50)
    prompts.early(second, 50)
    assert not prompts.complete(first, 69, start=50)
    assert second.evicted
    assert not prompts.complete(second, 69, start=50)
    prompts.admission.closed(second, 50)
    assert first.leave is not None
    assert not prompts.complete(second, 69)
    prompts.admission.release(first)
    assert second.leave is not None


async def test_a_prompt_larger_than_all_that_is_free_gets_leave_alone(prompts: Prompts) -> None:
    """A count that is too low can make nobody wait for ever."""
    large = prompts.new()
    assert prompts.complete(large, 150)


async def test_long_answers_begin_with_some_room_and_grow_into_that_of_waiting_sessions() -> None:
    admission = Admission(2 * ANSWER_ROOM, block_size=BLOCK, max_sessions=10, prefill="session")
    prompts = Prompts(admission)
    answering, session = prompts.new(), prompts.new()
    assert prompts.complete(answering, 10, answer=100_000)
    prompts.early(session, 200)
    prompts.admission.answered(answering, 10 + ANSWER_ROOM)
    assert not session.evicted
    prompts.admission.answered(answering, 310)
    assert session.evicted


async def test_the_number_of_open_requests_is_limited_too() -> None:
    prompts = Prompts(Admission(1000, block_size=BLOCK, max_sessions=2, prefill="session"))
    first, second, complete = prompts.new(), prompts.new(), prompts.new()
    assert prompts.early(first, 10) is prompts.early(second, 20) is Kind.SESSION
    assert not prompts.complete(complete, 10)
    assert (first.evicted, second.evicted) == (True, False)
    prompts.admission.closed(first, 10)
    assert complete.leave is not None


async def test_warm_blocks_are_reused_oldest_first_and_their_prompts_told(prompts: Prompts) -> None:
    prompts = _admission(prefill="prefix")
    old, new, complete = prompts.new(), prompts.new(), prompts.new()
    prompts.early(old, 40)
    prompts.early(new, 40)
    assert prompts.complete(complete, 59)
    assert (old.cold, new.cold) == (True, False)


async def test_an_evicted_context_is_taken_up_again_when_there_is_room(prompts: Prompts) -> None:
    evicted, complete = prompts.new(), prompts.new()
    prompts.early(evicted, 70)
    assert not prompts.complete(complete, 89)
    prompts.admission.closed(evicted, 70)
    assert complete.leave is not None
    assert evicted.cold
    assert prompts.early(evicted, 70) is None
    prompts.admission.release(complete)
    assert evicted.leave is not None
    assert evicted.leave.kind is Kind.SESSION


async def test_leave_that_is_not_used_is_given_back(prompts: Prompts) -> None:
    claim = prompts.new()
    prompts.admission.ask(claim, Ask(0, 30, 0))
    prompts.admission.withdraw(claim)
    assert (prompts.admission.free_tokens, prompts.admission.open_requests) == (100, 0)
    prompts.early(claim, 30)
    prompts.admission.ask(claim, Ask(30, 50, 0))
    assert prompts.admission.free_tokens == 50
    prompts.admission.withdraw(claim)
    assert (prompts.admission.free_tokens, prompts.admission.open_requests) == (70, 1)


async def test_a_prompt_that_gives_up_leaves_nothing_behind(prompts: Prompts) -> None:
    claims = [prompts.new() for _ in range(6)]
    for claim in claims[:4]:
        prompts.early(claim, 30)
    prompts.complete(claims[4], 70)
    prompts.complete(claims[5], 70)
    for claim in claims:
        prompts.admission.release(claim)
    assert (prompts.admission.free_tokens, prompts.admission.waiting) == (100, 0)
    assert prompts.admission.open_requests == 0


async def test_too_many_waiting_are_refused() -> None:
    prompts = _admission(max_waiting=1)
    prompts.complete(prompts.new(), 99)
    prompts.complete(prompts.new(), 99)
    with pytest.raises(Overloaded, match="1 prompts wait for the engine"):
        prompts.new()


def test_the_gate_closes_for_early_prefill_while_complete_prompts_wait_for_a_token() -> None:
    gate = EarlyGate()
    assert gate.room(urgent=False) == 256  # a quarter of a second of what it is taken for at first
    assert gate.room(urgent=True) == 0


def test_the_gate_learns_the_speed_of_the_engine() -> None:
    gate = EarlyGate()
    for _ in range(50):
        gate.started(100)
        gate.ended(100, 100 / 50_000)
    assert gate.room(urgent=False) == pytest.approx(12_500, abs=1)
    assert gate.room(urgent=True) == pytest.approx(250, abs=1)
    for _ in range(100):
        gate.started(100)
        gate.ended(100, 100 / 400)
    assert gate.room(urgent=False) == 100


def test_the_gate_counts_what_is_in_flight() -> None:
    gate = EarlyGate()
    gate.started(150)
    assert gate.room(urgent=False) == 106
    gate.started(100)
    assert gate.room(urgent=False) == 0
    gate.ended(250, None)
    assert gate.room(urgent=False) == 256


def test_the_gate_yields_to_requests_of_other_doors() -> None:
    waits = iter((None, 0.0, None))
    gate = EarlyGate(lambda: next(waits))
    assert [gate.room(urgent=False) for _ in range(3)] == [256, 0, 256]


async def test_a_chunk_is_cut_to_what_the_gate_has_room_for() -> None:
    prompts = Prompts(Admission(10_000, block_size=10, max_sessions=9, gate=EarlyGate()))
    claim = prompts.new()
    prompts.admission.ask(claim, Ask(0, 2000, 0))
    assert claim.leave is not None
    assert claim.leave.end == 256
    other = prompts.new()
    prompts.admission.ask(other, Ask(0, 100, 0))
    assert other.leave is None
    prompts.admission.closed(claim, 256)
    assert other.leave is not None


async def test_nobody_is_evicted_while_the_engine_has_enough_to_do_for_complete_prompts() -> None:
    class Busy(OpenGate):
        def busy(self, tokens: int) -> bool:
            return tokens >= 50

    prompts = _admission(prefill="session", gate=Busy())
    session, busy, complete = prompts.new(), prompts.new(), prompts.new()
    prompts.early(session, 30)
    assert prompts.complete(busy, 50, answer=0)
    assert not prompts.complete(complete, 39)
    assert not session.evicted
    prompts.admission.answered(busy, 50)
    assert session.evicted


class Stuck:
    """An engine in which nothing moves, as the watchdog sees it through admission."""

    def __init__(self) -> None:
        self.others_s: float | None = None
        self.prompts = Prompts(
            Admission(
                100,
                block_size=BLOCK,
                max_sessions=10,
                others_wait_s=lambda: self.others_s,
                watchdog_s=0.05,
            )
        )


@pytest.fixture
async def stuck() -> Stuck:
    return Stuck()


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)


async def test_the_watchdog_evicts_a_waiting_session_when_a_chunk_stands_still(
    stuck: Stuck,
) -> None:
    waiting, standing = stuck.prompts.new(), stuck.prompts.new()
    stuck.prompts.early(waiting, 10)
    stuck.prompts.admission.ask(standing, Ask(0, 10, 0))
    await _until(lambda: waiting.evicted)
    assert not standing.evicted
    for claim in (waiting, standing):
        stuck.prompts.admission.release(claim)


async def test_the_watchdog_evicts_when_requests_of_other_doors_stand_still(stuck: Stuck) -> None:
    waiting = stuck.prompts.new()
    stuck.prompts.early(waiting, 10)
    stuck.others_s = 1.0
    await _until(lambda: waiting.evicted)
    stuck.prompts.admission.release(waiting)


async def test_contexts_that_do_not_grow_make_room_for_those_that_do(stuck: Stuck) -> None:
    idle, warm, growing = (stuck.prompts.new() for _ in range(3))
    assert stuck.prompts.early(idle, 70) is Kind.SESSION
    assert stuck.prompts.early(warm, 30) is Kind.PREFIX
    assert stuck.prompts.early(growing, 20) is None
    await _until(lambda: idle.evicted)
    stuck.prompts.admission.closed(idle, 70)
    await _until(lambda: growing.leave is not None)
    for claim in (idle, warm, growing):
        stuck.prompts.admission.release(claim)
