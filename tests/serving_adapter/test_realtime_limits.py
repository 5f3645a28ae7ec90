"""What a Realtime server refuses, and how it ends sessions: said clearly, counted, nothing kept."""

import asyncio
import json
import re
from typing import Any

import pytest
from prometheus_client import REGISTRY

from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.realtime.admission import Admission
from s2l.serving_adapter.realtime.connection import Connection
from s2l.serving_adapter.realtime.limits import Limits, OpenSessions, key_of
from s2l.serving_adapter.realtime.outbox import Outbox

SLOW = Latencies(prefill_tokens_per_s=1e6, overhead_s=0.005, tpot_s=0.02)


def _hits(limit: str) -> float:
    return REGISTRY.get_sample_value("s2l_limits_hit_total", {"limit": limit}) or 0.0


def _sessions(state: str) -> float:
    return REGISTRY.get_sample_value("s2l_sessions", {"state": state}) or 0.0


async def test_a_message_that_is_too_large_is_refused(connected: Any) -> None:
    before = _hits("max_message_bytes")
    async with connected(limits=Limits(max_message_bytes=1000)) as peer:
        await peer.item("x" * 2000, "a")
        problem = await peer.error()
        assert problem["code"] == "message_too_large"
        assert "at most 1000 bytes" in problem["message"]
        await peer.socket.send_str('{"type": "' + "\u00e9" * 499 + '"}')  # 1,010 bytes, 511 signs
        assert (await peer.error())["code"] == "message_too_large"
        await peer.item("x" * 100, "b")
        assert (await peer.next())["type"] == "conversation.item.added"
    assert _hits("max_message_bytes") - before == 2


async def test_items_are_counted(connected: Any) -> None:
    before = _hits("max_items")
    async with connected(limits=Limits(max_items=2)) as peer:
        for item_id in "abc":
            await peer.item("word", item_id)
        assert (await peer.error())["code"] == "too_many_items"
        content = [{"type": "input_text", "text": "word"}]
        await peer.ask(conversation="none", input=[{"content": content}] * 3)
        problem = await peer.error()
        assert (problem["code"], problem["param"]) == ("too_many_items", "response.input")
        await peer.send("conversation.item.delete", item_id="a")
        await peer.item("word", "c")
        assert (await peer.last("conversation.item.added"))["item"]["id"] == "c"
    assert _hits("max_items") - before == 2


async def test_responses_at_once_are_counted(connected: Any) -> None:
    before = _hits("max_responses")
    async with connected(MockEngine(SLOW), Limits(max_responses=2)) as peer:
        for _ in range(3):
            await peer.ask(conversation="none", instructions="Go.", max_output_tokens=10)
        assert (await peer.error())["code"] == "rate_limit_exceeded"
        await peer.done()
        await peer.ask(conversation="none", instructions="Go.")
        await peer.until("response.created")
    assert _hits("max_responses") - before == 1


async def test_changes_that_the_engine_cannot_take_are_counted(connected: Any) -> None:
    before = _hits("max_queued_changes")
    engine = MockEngine(Latencies(overhead_s=30.0))
    async with connected(engine, Limits(max_queued_changes=4)) as peer:
        for number in range(5):
            await peer.item("word", f"i{number}")
        problem = await peer.error()
        assert problem["code"] == "rate_limit_exceeded"
        assert "4 changes wait" in problem["message"]
    assert _hits("max_queued_changes") - before == 1


async def test_changes_that_the_engine_took_are_forgotten(connected: Any) -> None:
    async with connected(limits=Limits(max_queued_changes=2)) as peer:
        await peer.send("session.update", session={"s2l": {"report": True}})
        for number in range(6):
            await peer.item("some words", f"i{number}")
            await peer.until("s2l.prefilled")


async def test_changes_that_the_engine_need_not_take_are_not_counted(connected: Any) -> None:
    async with connected(limits=Limits(max_queued_changes=2)) as peer:
        for number in range(6):
            await peer.send("session.update", session={"instructions": f"Go {number}."})
            await peer.ask(conversation="none", instructions="Greet.")
            assert (await peer.done())["status"] == "incomplete"


async def test_an_idle_session_is_ended(connected: Any) -> None:
    before = _hits("max_idle_s")
    async with connected(limits=Limits(max_idle_s=0.1)) as peer:
        await peer.item("word " * 20, "a")
        assert (await peer.error())["code"] == "session_expired"
        code, reason = await peer.closed()
        assert code == 1008
        assert "max_idle_s" in reason
        await peer.until_idle()
    assert _hits("max_idle_s") - before == 1


async def test_a_session_that_answers_is_not_idle(connected: Any) -> None:
    async with connected(MockEngine(SLOW), Limits(max_idle_s=0.1)) as peer:
        await peer.item("Question?", "a")
        await peer.ask(max_output_tokens=15)
        assert (await peer.done())["usage"]["output_tokens"] == 15


async def test_a_session_ends_with_its_time(connected: Any) -> None:
    before = _hits("max_session_s")
    async with connected(MockEngine(SLOW), Limits(max_session_s=0.2)) as peer:
        await peer.item("Question?", "a")
        await peer.ask(max_output_tokens=1000)
        problem = await peer.error()
        assert problem["code"] == "session_expired"
        assert (await peer.closed())[0] == 1008
        await peer.until_idle()
    assert _hits("max_session_s") - before == 1


class Stuck:
    """A client that sends what it is told and never reads."""

    def __init__(self, *events: dict[str, Any]) -> None:
        self._frames = [json.dumps(event) for event in events]

    async def receive(self) -> str | None:
        if not self._frames:
            await asyncio.Event().wait()
        return self._frames.pop(0)

    async def send(self, frame: str) -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        (Limits(max_send_s=0.1), "max_send_s"),
        (Limits(max_unsent_bytes=20_000), "max_unsent_bytes"),
    ],
)
async def test_a_client_that_does_not_read_is_dropped(limits: Limits, limit: str) -> None:
    before = _hits(limit)
    engine = MockEngine(Latencies(tpot_s=0.001))
    admission = Admission(10_000, block_size=16, max_sessions=8)
    ask = {"type": "response.create", "response": {"instructions": "Go."}}
    async with asyncio.timeout(5):
        ending = await Connection(Stuck(ask), engine, admission, limits).serve()
    assert (ending.code, ending.limit) == (1008, limit)
    assert "does not read" in ending.reason
    assert (engine.open_runs, admission.free_tokens) == (0, 10_000)
    assert _hits(limit) - before == 1
    engine.close()


async def test_unsent_events_are_counted_in_bytes() -> None:
    outbox = Outbox(Stuck(), Limits(max_unsent_bytes=1000))
    outbox.put({"type": "x" * 400})
    outbox.put({"type": "\u4e2d" * 200})  # 600 bytes of 200 signs
    ending = await asyncio.wait_for(outbox.drain(), 5)
    assert ending.limit == "max_unsent_bytes"


async def test_a_full_queue_is_told_as_the_api_does(connected: Any) -> None:
    before = _hits("kv_cache")
    async with connected(MockEngine(Latencies(overhead_s=30.0))) as peer:
        peer.admission._max_waiting = 0
        await peer.item("word", "a")
        problem = await peer.error()
        assert (problem["type"], problem["code"]) == ("rate_limit_error", "rate_limit_exceeded")
        assert "try again later" in problem["message"]
        peer.admission._max_waiting = 8
        await peer.item("word", "a")  # the id is free: the item was not taken
        assert (await peer.next())["type"] == "conversation.item.added"
    assert _hits("kv_cache") - before == 1


async def test_sessions_are_counted_by_state(connected: Any) -> None:
    before = {state: _sessions(state) for state in ("open", "answering", "idle")}

    def now() -> dict[str, float]:
        return {state: _sessions(state) - before[state] for state in before}

    async with connected(MockEngine(SLOW)) as peer:
        assert now() == {"open": 1, "answering": 0, "idle": 0}
        await peer.item("Question?", "a")
        await peer.ask(max_output_tokens=4)
        await peer.until("response.output_text.delta")
        assert now() == {"open": 0, "answering": 1, "idle": 0}
        await peer.done()
        assert now() == {"open": 0, "answering": 0, "idle": 1}
        await peer.item("And?", "b")
        await peer.until("conversation.item.done")
        assert now() == {"open": 1, "answering": 0, "idle": 0}
    assert now() == {"open": 0, "answering": 0, "idle": 0}


async def test_items_are_timed_until_the_engine_holds_them(connected: Any) -> None:
    names = ("s2l_item_to_prefilled_seconds_count", "s2l_merged_items_total")
    before = [REGISTRY.get_sample_value(name) or 0.0 for name in names]
    async with connected() as peer:
        await peer.send("session.update", session={"s2l": {"report": True}})
        await peer.item("first words", "a")
        await peer.until("s2l.prefilled")
        for item_id in "bcd":  # sent at once, so prefilled at once
            await peer.item("more words", item_id)
        await peer.until("s2l.prefilled")
    after = [REGISTRY.get_sample_value(name) or 0.0 for name in names]
    assert [b - a for a, b in zip(before, after, strict=True)] == [4, 3]


def test_a_key_has_no_more_than_its_sessions() -> None:
    sessions = OpenSessions(2)
    before = _hits("max_sessions_per_key")
    assert [sessions.enter("a") for _ in range(3)] == [True, True, False]
    assert sessions.enter("b")
    sessions.leave("a")
    assert sessions.enter("a")
    assert sessions.total == 3
    assert _hits("max_sessions_per_key") - before == 1


def test_keys_are_told_apart_and_not_kept() -> None:
    assert key_of("Bearer secret", "1.2.3.4") == key_of("Bearer secret", "5.6.7.8")
    assert key_of("Bearer secret", "") != key_of("Bearer other", "")
    assert key_of("Bearer secret", "") == key_of("bEARER secret", "")
    assert "secret" not in key_of("Bearer secret", "")
    assert key_of(None, "1.2.3.4") != key_of(None, "5.6.7.8")


def test_limits_are_read_from_the_environment() -> None:
    limits = Limits.from_environment({"S2L_MAX_ITEMS": "7", "S2L_MAX_IDLE_S": "2.5", "OTHER": "x"})
    assert limits == Limits(max_items=7, max_idle_s=2.5)
    assert Limits.from_environment({}) == Limits()


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("S2L_MAX_ITEMS", "many", "a positive integer"),
        ("S2L_MAX_ITEMS", "0", "a positive integer"),
        ("S2L_MAX_ITEMS", "2.5", "a positive integer"),
        ("S2L_MAX_IDLE_S", "-1", "a positive number of seconds"),
        ("S2L_MAX_SESSION_S", "inf", "a positive number of seconds"),
        ("S2L_MAX_SEND_S", "nan", "a positive number of seconds"),
    ],
)
def test_a_limit_that_is_no_number_is_named(name: str, value: str, what: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r} is not {what}")):
        Limits.from_environment({name: value})
