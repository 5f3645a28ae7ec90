"""The sender in virtual time: what is sent when, to the microsecond, however long it takes."""

import asyncio
import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import pytest

from s2l.replayer.cancellation import cancel_moments_us
from s2l.replayer.limits import Limits
from s2l.replayer.pacer import Pacer
from s2l.replayer.passes import Pass
from s2l.replayer.record import ChunkSend, QuerySend, RequestRecord
from s2l.replayer.replayer import GONE_AFTER, Replayer
from s2l.replayer.timeout_wheel import TICK_US
from s2l.serving_adapter.base import Listener, ServingError, Usage

SECOND_US = 1_000_000
CHUNK_US, DUE_US = 100_000, 300_000
TTFT_US, END_US = 50_000, 80_000


class Call:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualClock:
    """Passes only when the event loop has nothing else to do, from one deadline to the next."""

    def __init__(self) -> None:
        self.now = 7_000
        self._calls: list[tuple[int, int, Call]] = []
        self._tie = count()
        self._running = False

    def now_ns(self) -> int:
        return self.now

    def call_at_ns(self, deadline_ns: int, callback: Callable[[], object]) -> Call:
        call = Call(callback)
        heapq.heappush(self._calls, (deadline_ns, next(self._tie), call))
        self._go_on()
        return call

    def close(self) -> None:
        self._calls.clear()

    def _go_on(self) -> None:
        if not self._running and self._calls:
            self._running = True
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._step)  # after all that is ready by now

    def _step(self) -> None:
        self._running = False
        while self._calls and self._calls[0][2].callback is None:
            heapq.heappop(self._calls)
        if self._calls:
            deadline_ns, _, call = heapq.heappop(self._calls)
            self.now = max(self.now, deadline_ns)
            if call.callback is not None:
                call.callback()
        self._go_on()


@dataclass
class Server:
    """Answers a question after ``ttft_us``; how a request goes can be told by its salt."""

    pacer: Pacer
    ttft_us: int | None = TTFT_US
    connects: bool = True
    fails: Callable[[str], ServingError | None] = lambda _: None
    salts: list[str] = field(default_factory=list)
    open: int = 0
    most_open: int = 0

    def start(self, listener: Listener, *, salt: str) -> "Conversation":
        self.salts.append(salt)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        conversation = Conversation(self, listener)
        if error := self.fails(salt):
            conversation.close()
            listener.on_failed(error)
        return conversation


class Conversation:
    def __init__(self, server: Server, listener: Listener) -> None:
        self._server = server
        self._listener: Listener | None = listener

    def send_chunk(self, index: int) -> None:
        if self._listener is not None and self._server.connects:
            self._listener.on_sent(index)

    def ask(self) -> None:
        server, pacer = self._server, self._server.pacer
        if self._listener is None or not server.connects:
            return
        self._listener.on_asked()
        if server.ttft_us is not None:
            now_us = pacer.now_us()
            pacer.call_at_us(now_us + server.ttft_us, self._speak)
            pacer.call_at_us(now_us + server.ttft_us + END_US - TTFT_US, self._finish)

    def close(self) -> None:
        if self._listener is not None:
            self._listener = None
            self._server.open -= 1

    def _speak(self) -> None:
        if self._listener is not None:
            self._listener.on_text("word", 1)

    def _finish(self) -> None:
        if (listener := self._listener) is not None:
            self.close()
            listener.on_finished(Usage(10, 0, 1), "stop")


QUERY = QuerySend(
    "q",
    DUE_US,
    (ChunkSend(0, "append", CHUNK_US, CHUNK_US), ChunkSend(1, "append", DUE_US, DUE_US)),
)


def _pass(starts_us: Sequence[int]) -> Pass:
    starts = np.array(starts_us, dtype=np.int64)
    return Pass("run", "stream", None, 1.0, (QUERY,), np.arange(len(starts)), starts)


async def _replay(
    starts_us: Sequence[int],
    server: Server | None = None,
    during: Callable[[Replayer, Pacer], object] = lambda _, __: None,
    **options: object,
) -> tuple[list[RequestRecord], Replayer]:
    pacer = server.pacer if server is not None else Pacer(VirtualClock())
    server = server or Server(pacer)
    records: list[RequestRecord] = []
    replayer = Replayer(
        _pass(starts_us),
        [server],
        pacer,
        records.append,
        start_us=1000,
        **options,  # type: ignore[arg-type]
    )
    during(replayer, pacer)
    await asyncio.wait_for(replayer.run(), 60)
    assert server.open == 0
    return records, replayer


async def test_ten_hours_drift_by_nothing() -> None:
    starts = range(0, 36_000 * SECOND_US, 10 * SECOND_US)
    records, _ = await _replay(starts)
    assert len(records) == 3_600
    for number, record in enumerate(records):
        start_us = 1000 + number * 10 * SECOND_US
        assert (record.start_intended_us, record.start_us) == (start_us, start_us)
        assert record.sent_us == [start_us + CHUNK_US, start_us + DUE_US]
        assert record.context_us == start_us + DUE_US
        assert record.token_us == [start_us + DUE_US + TTFT_US]
        assert record.end_us == start_us + DUE_US + END_US
    assert {record.error_type for record in records} == {None}
    assert len({record.request_id for record in records}) == 3_600


async def test_all_that_is_due_at_once_is_sent_at_once() -> None:
    records, _ = await _replay([0] * 500)
    assert {record.start_us for record in records} == {1000}


async def test_a_closed_loop_keeps_so_many_under_way() -> None:
    server = Server(Pacer(VirtualClock()))
    records, _ = await _replay([0] * 10, server, concurrency=3)
    lasts = DUE_US + END_US
    assert server.most_open == 3
    assert [record.start_us for record in records] == [1000 + n // 3 * lasts for n in range(10)]
    assert all(r.start_us == r.start_intended_us == r.eligible_us for r in records)


async def test_a_closed_loop_ends_with_its_duration() -> None:
    records, replayer = await _replay([0] * 1000, concurrency=2, duration_us=SECOND_US)
    lasts = DUE_US + END_US
    assert len(records) == replayer.started == 2 * (SECOND_US // lasts + 1)


async def test_a_capped_open_loop_counts_from_the_intended_time() -> None:
    server = Server(Pacer(VirtualClock()))
    records, _ = await _replay([0, 0, 0, 2 * SECOND_US], server, max_concurrency=2)
    lasts = DUE_US + END_US
    assert server.most_open == 2
    waited = records[2]
    assert (waited.start_intended_us, waited.start_us) == (1000, 1000 + lasts)
    assert waited.eligible_us == 1000 + lasts
    # Its retrieval went on meanwhile: all of its context is sent at once, and it is late.
    assert waited.sent_us == [1000 + lasts] * 2
    assert waited.token_us[0] - waited.context_intended_us == lasts - DUE_US + TTFT_US
    assert records[3].start_us == records[3].eligible_us == 1000 + 2 * SECOND_US


@pytest.mark.parametrize(
    ("limits", "server", "kind", "passed_us"),
    [
        (Limits(timeout_s=2), {"ttft_us": None}, "timeout", DUE_US + 2 * SECOND_US),
        (
            Limits(timeout_s=9, first_token_timeout_s=0.5),
            {"ttft_us": None},
            "timeout",
            DUE_US + SECOND_US // 2,
        ),
        (
            Limits(timeout_s=9, connect_timeout_s=0.5),
            {"connects": False},
            "connect_timeout",
            CHUNK_US + SECOND_US // 2,
        ),
    ],
)
async def test_timeouts_by_phase(
    limits: Limits, server: dict[str, object], kind: str, passed_us: int
) -> None:
    silent = Server(Pacer(VirtualClock()), **server)  # type: ignore[arg-type]
    records, _ = await _replay([0, SECOND_US], silent, limits=limits)
    assert [record.error_type for record in records] == [kind, kind]
    for record in records:
        late_us = (record.end_us or 0) - record.start_intended_us - passed_us
        assert 0 <= late_us <= TICK_US


async def test_no_timeout_for_requests_that_are_in_time() -> None:
    limits = Limits(timeout_s=0.1, connect_timeout_s=0.1, first_token_timeout_s=0.1)
    records, _ = await _replay(range(0, 100 * SECOND_US, SECOND_US), limits=limits)
    assert {record.error_type for record in records} == {None}


@pytest.mark.parametrize("kind", ["refused", "rate_limited", "server_error"])
async def test_a_failed_request_is_tried_again_only_where_that_was_asked_for(kind: str) -> None:
    def server() -> Server:
        seen: dict[str, int] = {}

        def fails(salt: str) -> ServingError | None:
            seen[salt] = seen.get(salt, 0) + 1
            return ServingError(kind, "busy", retry_after_s=1.0) if seen[salt] < 3 else None

        return Server(Pacer(VirtualClock()), fails=fails)

    (failed,), _ = await _replay([0], server())
    assert (failed.error_type, failed.attempt_us) == (kind, None)
    (record,), _ = await _replay([0], server(), limits=Limits(retries=2))
    assert record.error_type is None
    assert record.attempt_us == [1000, 1000 + SECOND_US, 1000 + 2 * SECOND_US]
    assert record.attempt_errors == [f"{kind}: busy"] * 2
    assert record.start_us == 1000
    # What was due meanwhile is sent by the attempt that went through.
    assert record.sent_us == [1000 + 2 * SECOND_US] * 2
    (given_up,), _ = await _replay([0], server(), limits=Limits(retries=1))
    assert (given_up.error_type, given_up.attempt_errors) == (kind, [f"{kind}: busy"])


async def test_what_another_attempt_cannot_mend_is_not_tried_again() -> None:
    class BreaksOff(Server):
        def start(self, listener: Listener, *, salt: str) -> "Conversation":
            conversation = super().start(listener, salt=salt)

            def break_off() -> None:
                listener.on_text("He", 1)
                conversation.close()
                listener.on_failed(ServingError("disconnected", "gone"))

            self.pacer.call_at_us(self.pacer.now_us() + DUE_US + 10_000, break_off)
            return conversation

    limits = Limits(retries=3)
    refusing = Server(Pacer(VirtualClock()), fails=lambda _: ServingError("rejected", "no"))
    for server, kind in (
        (refusing, "rejected"),
        (BreaksOff(Pacer(VirtualClock())), "disconnected"),
    ):
        (record,), _ = await _replay([0], server, limits=limits)
        assert (record.error_type, record.attempt_us, len(server.salts)) == (kind, None, 1)


async def test_a_resent_warm_up_leaves_the_time_of_the_question() -> None:
    """Its connection was closed after the question had gone out on another."""

    class Resender(Server):
        def start(self, listener: Listener, *, salt: str) -> "Conversation":
            lost = ServingError("disconnected", "closed")
            at_us = self.pacer.now_us() + DUE_US + 10_000
            self.pacer.call_at_us(at_us, lambda: listener.on_resent(lost))
            return super().start(listener, salt=salt)

    (record,), _ = await _replay([0], Resender(Pacer(VirtualClock())))
    assert (record.error_type, record.resends) == (None, 1)
    assert record.context_us == 1000 + DUE_US
    assert record.attempt_us == [1000, 1000 + DUE_US + 10_000]


class Refuser(Server):
    """Refuses the first connection, 50 ms after a piece has begun to wait for it."""

    def start(self, listener: Listener, *, salt: str) -> "Conversation":
        self.connects = bool(self.salts)
        conversation = super().start(listener, salt=salt)
        if not self.connects:
            refused_us = self.pacer.now_us() + CHUNK_US + 50_000
            self.pacer.call_at_us(refused_us, lambda: self._refuse(conversation, listener))
        return conversation

    def _refuse(self, conversation: "Conversation", listener: Listener) -> None:
        conversation.close()
        listener.on_failed(ServingError("refused", "nothing listens"))


async def test_a_client_that_will_give_up_later_tries_again() -> None:
    seen: set[str] = set()

    def fails(salt: str) -> ServingError | None:
        known = salt in seen
        seen.add(salt)
        return None if known else ServingError("refused", "nothing listens")

    server = Server(Pacer(VirtualClock()), fails=fails)
    later = np.array([5 * SECOND_US])
    (record,), _ = await _replay([0], server, limits=Limits(retries=1), cancel_us=later)
    assert (record.error_type, record.attempt_us) == (None, [1000, 501_000])


@pytest.mark.parametrize("at_us", [200_000, 400_000])
async def test_a_client_gives_up_in_time_while_it_waits_for_the_next_attempt(at_us: int) -> None:
    server = Refuser(Pacer(VirtualClock()))
    (record,), _ = await _replay([0], server, limits=Limits(retries=1), cancel_us=np.array([at_us]))
    assert (record.error_type, record.end_us) == ("cancelled", 1000 + at_us)


async def test_the_wait_between_attempts_is_no_wait_for_a_connection() -> None:
    limits = Limits(retries=1, connect_timeout_s=0.4)
    (record,), _ = await _replay([0], Refuser(Pacer(VirtualClock())), limits=limits)
    assert (record.error_type, record.attempt_us) == (None, [1000, 651_000])


async def test_counts_that_no_request_can_have_are_none() -> None:
    class Boaster(Server):
        def start(self, listener: Listener, *, salt: str) -> "Conversation":
            conversation = super().start(listener, salt=salt)
            listener.on_text("word", 2**40)
            listener.on_finished(Usage(3_000_000_000, -1, 1), "stop")
            return conversation

    (record,), _ = await _replay([0], Boaster(Pacer(VirtualClock())))
    assert record.usage == Usage(None, None, 1)
    assert record.token_n == [1]


async def test_clients_give_up_at_the_moments_that_the_seed_says() -> None:
    n = 400
    dues_us = np.full(n, DUE_US)
    moments = cancel_moments_us(n, 0.25, 7, dues_us)
    assert moments is not None
    assert np.array_equal(moments, cancel_moments_us(n, 0.25, 7, dues_us))
    assert cancel_moments_us(n, 0.0, 7, dues_us) is None
    records, _ = await _replay(range(0, n * SECOND_US, SECOND_US), cancel_us=moments)
    for record, moment in zip(records, moments, strict=True):
        if 0 <= moment < DUE_US + END_US:
            assert record.error_type == "cancelled"
            assert record.end_us == record.start_intended_us + moment
        else:
            assert record.error_type is None
    share = sum(moment >= 0 for moment in moments) / n
    assert 0.2 < share < 0.3


async def test_draining_ends_what_is_under_way_and_starts_nothing() -> None:
    def during(replayer: Replayer, pacer: Pacer) -> None:
        pacer.call_at_us(1000 + 2 * SECOND_US + CHUNK_US, replayer.drain)

    records, replayer = await _replay(range(0, 10 * SECOND_US, SECOND_US), during=during)
    assert replayer.started == len(records) == 3
    assert {record.error_type for record in records} == {None}


async def test_stopping_ends_at_once() -> None:
    def during(replayer: Replayer, pacer: Pacer) -> None:
        pacer.call_at_us(1000 + 2 * SECOND_US + CHUNK_US, replayer.stop)

    records, _ = await _replay(range(0, 10 * SECOND_US, SECOND_US), during=during)
    assert [record.error_type for record in records] == [None, None, "interrupted"]
    assert records[-1].end_us == 1000 + 2 * SECOND_US + CHUNK_US


async def test_a_server_that_is_gone_ends_the_pass() -> None:
    gone = ServingError("refused", "cannot connect")

    def fails(salt: str) -> ServingError | None:
        return gone if int(salt[-5:]) >= 10 else None

    server = Server(Pacer(VirtualClock()), fails=fails)
    records, replayer = await _replay(range(0, 1000 * SECOND_US, SECOND_US), server)
    assert replayer.server_gone
    assert replayer.started == len(records) == 10 + GONE_AFTER


async def test_every_request_has_a_salt_of_its_own() -> None:
    server = Server(Pacer(VirtualClock()))
    await _replay([0] * 100, server)
    assert len(set(server.salts)) == 100
    assert all(salt.startswith("run/stream-") for salt in server.salts)


def test_slices_are_the_whole_pass() -> None:
    whole = _pass([n * 1000 for n in range(10)])
    records = [
        (r.request_id, r.start_intended_us, worker)
        for worker in range(3)
        for r in whole.slice_for(worker, 3).records(500)
    ]
    assert sorted(records) == [
        (r.request_id, r.start_intended_us, n % 3) for n, r in enumerate(whole.records(500))
    ]
    assert {r.worker for r in whole.slice_for(2, 3).records(0)} == {2}


def test_queries_are_used_again_by_repeats() -> None:
    queries = (QuerySend("a", 0), QuerySend("b", 0))
    todo = Pass("run", "wait", "50%", None, queries, np.arange(5), np.zeros(5, dtype=np.int64))
    found = [(r.request_id, r.query.query_id, r.repeat, r.answer_at) for r in todo.records(0)]
    assert found == [
        ("wait@50%-00000", "a", 0, "50%"),
        ("wait@50%-00001", "b", 0, "50%"),
        ("wait@50%-00002", "a", 1, "50%"),
        ("wait@50%-00003", "b", 1, "50%"),
        ("wait@50%-00004", "a", 2, "50%"),
    ]
