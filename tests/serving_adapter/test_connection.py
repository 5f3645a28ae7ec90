"""The Realtime server over a real WebSocket: each event is answered as the API does, or refused."""

import asyncio
from typing import Any

import pytest

from s2l.serving_adapter.mock.engine import Latencies, MockEngine


def _kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


async def test_a_text_session_gives_the_events_of_the_api_in_order(connected: Any) -> None:
    async with connected() as peer:
        await peer.send("session.update", session={"type": "realtime", "instructions": "Answer."})
        assert (await peer.next())["session"]["instructions"] == "Answer."
        await peer.item("Page one.\n", "a")
        await peer.item("Question?", "b")
        await peer.ask(max_output_tokens=2)
        events = await peer.until("response.done")
        assert _kinds(events) == [
            "conversation.item.added",
            "conversation.item.done",
            "conversation.item.added",
            "conversation.item.done",
            "response.created",
            "rate_limits.updated",
            "response.output_item.added",
            "conversation.item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "conversation.item.done",
            "response.done",
        ]
        response = events[-1]["response"]
        deltas = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
        assert response["output"][0]["content"][0] == {"type": "output_text", "text": deltas}
        assert response["status"] == "incomplete"
        assert response["status_details"] == {"type": "incomplete", "reason": "max_output_tokens"}
        # <system> | Answer. | <user> | space ; Page | one. | newline ; Question? ; <assistant>
        assert response["usage"]["input_tokens"] == 9
        assert response["usage"]["output_tokens"] == 2
        assert len({event["event_id"] for event in events}) == len(events)
        assert [e["previous_item_id"] for e in events if "previous_item_id" in e] == [
            None,
            None,
            "a",
            "a",
            "b",
            "b",
        ]


async def test_the_last_event_of_an_item_tells_its_state(connected: Any) -> None:
    async with connected() as peer:
        await peer.item("Question?", "a")
        await peer.ask(max_output_tokens=2)
        events = await peer.until("response.done")
        states = [e["item"]["status"] for e in events if e["type"] == "response.output_item.added"]
        states += [e["item"]["status"] for e in events if e["type"] == "response.output_item.done"]
        assert states == ["in_progress", "incomplete"]


async def test_extensions_are_sent_only_to_those_who_ask(connected: Any) -> None:
    async with connected() as peer:
        await peer.item("word " * 20, "a")
        await peer.ask()
        events = await peer.until("response.done")
        assert not any(e["type"].startswith("s2l") or "s2l" in e for e in events)
    async with connected() as peer:
        await peer.send("session.update", session={"type": "realtime", "s2l": {"report": True}})
        await peer.item("word " * 20, "a")
        report = await peer.last("s2l.prefilled")
        assert report["item_ids"] == ["a"]
        await peer.item("Question?", "b")
        await peer.ask()
        events = await peer.until("response.done")
        assert [e["s2l"] for e in events if "delta" in e] == [{"tokens": 1}]
        # <user> | space ; 20 words and a space, the last token being held back.
        assert events[-1]["response"]["usage"]["input_token_details"]["cached_tokens"] == 22


_TOO_DEEP = '{"type": "session.update", "session": {"tools": ' + "[" * 5000 + "]" * 5000 + "}}"


@pytest.mark.parametrize(
    ("frame", "code", "param", "message"),
    [
        ("not json", "invalid_event", None, "not a valid event"),
        ("[]", "invalid_event", None, "not a valid event"),
        ("", "invalid_event", None, "not a valid event"),
        (_TOO_DEEP, "invalid_event", None, "nested too deeply"),
        ('{"type": "response.create", "type"', "invalid_event", None, "not a valid event"),
        ("{}", "missing_required_parameter", "type", "missing required parameter: 'type'"),
        ('{"type": "session.fly"}', "invalid_value", "type", "'session.fly'; supported values"),
        ('{"type": 7}', "invalid_value", "type", "'7'; supported values are 'session.update'"),
        ('{"type": "response.create", "response": 3}', "invalid_type", "response", "got `int`"),
        (
            '{"type": "response.create", "response": {"max_output_tokens": 0}}',
            "invalid_value",
            "response.max_output_tokens",
            ">= 1",
        ),
        (
            '{"type": "response.create", "response": {"temperature": 2.5}}',
            "invalid_value",
            "response.temperature",
            "<= 2.0",
        ),
        (
            '{"type": "response.create", "response": {"conversation": "other"}}',
            "invalid_value",
            "response.conversation",
            "supported values are 'auto' and 'none'",
        ),
        (
            '{"type": "conversation.item.create"}',
            "missing_required_parameter",
            "item",
            "missing required parameter",
        ),
        (
            '{"type": "session.update", "session": {"type": "realtime", "modalities": ["text"]}}',
            "unknown_parameter",
            "session.modalities",
            "unknown parameter: 'session.modalities'",
        ),
        (
            '{"type": "conversation.item.delete", "item_id": "a"}',
            "item_delete_invalid_item_id",
            "item_id",
            "there is no item 'a'",
        ),
        (
            '{"type": "conversation.item.retrieve", "item_id": "a"}',
            "item_retrieve_invalid_item_id",
            "item_id",
            "there is no item 'a'",
        ),
        (
            '{"type": "conversation.item.truncate", "item_id": "a", "content_index": 0, '
            '"audio_end_ms": 0}',
            "item_truncate_invalid_item_id",
            "item_id",
            "there is no item 'a'",
        ),
        ('{"type": "response.cancel"}', "response_cancel_not_active", None, "no active response"),
        ('{"type": "response.create"}', "empty_conversation", None, "create an item before"),
        (
            '{"type": "session.update", "session": {"type": "realtime", "model": "other"}}',
            "model_not_found",
            "session.model",
            "this server serves 'mock', not 'other'",
        ),
        (
            '{"type": "session.update", "session": {"output_modalities": ["audio"]}}',
            "not_supported",
            "session.output_modalities",
            "session.output_modalities other than ['text']",
        ),
        (
            '{"type": "session.update", "session": {"tools": [{"type": "function"}]}}',
            "not_supported",
            "session.tools",
            "session.tools",
        ),
        (
            '{"type": "response.create", "response": {"tool_choice": "required"}}',
            "not_supported",
            "response.tool_choice",
            "other than 'auto' or 'none'",
        ),
        (
            '{"type": "session.update", "session": {"audio": {"output": {"voice": "ash"}}}}',
            "not_supported",
            "session.audio",
            "session.audio",
        ),
        (
            '{"type": "session.update", "session": {"truncation": "auto"}}',
            "not_supported",
            "session.truncation",
            "other than 'disabled'",
        ),
        ('{"type": "input_audio_buffer.append", "audio": ""}', "not_supported", "type", "text"),
        ('{"type": "input_audio_buffer.clear"}', "not_supported", "type", "text alone"),
        ('{"type": "input_audio_buffer.commit"}', "not_supported", "type", "text alone"),
        ('{"type": "output_audio_buffer.clear"}', "not_supported", "type", "text alone"),
    ],
)
async def test_bad_events_are_refused_in_the_error_form(
    connected: Any, frame: str, code: str, param: str | None, message: str
) -> None:
    async with connected() as peer:
        await peer.socket.send_str(frame)
        problem = await peer.error()
        assert problem["type"] == "invalid_request_error"
        assert (problem["code"], problem["param"]) == (code, param) or not param
        assert message in problem["message"]
        await peer.item("still here", "a")
        assert (await peer.next())["type"] == "conversation.item.added"


@pytest.mark.parametrize(
    ("item", "code", "param"),
    [
        ({"type": "message", "role": "critic", "content": []}, "invalid_value", "item.role"),
        ({"type": "function_call", "name": "f"}, "not_supported", "item.type"),
        ({"type": "item_reference", "id": "a"}, "not_supported", "item.type"),
        ({"type": "message", "role": "user", "content": []}, "invalid_value", "item.content"),
        (
            {"type": "message", "role": "user", "content": [{"type": "input_audio"}]},
            "invalid_value",
            "item.content",
        ),
        (
            {"type": "message", "role": "assistant", "content": [{"type": "input_text"}]},
            "invalid_value",
            "item.content",
        ),
        ({"id": "x" * 65, "content": [{"type": "input_text"}]}, "invalid_value", "item.id"),
        ({"id": "", "content": [{"type": "input_text"}]}, "invalid_value", "item.id"),
    ],
)
async def test_items_that_are_not_text_are_refused(
    connected: Any, item: dict[str, Any], code: str, param: str
) -> None:
    async with connected() as peer:
        await peer.send("conversation.item.create", item=item, event_id="mine")
        problem = await peer.error()
        assert (problem["code"], problem["param"], problem["event_id"]) == (code, param, "mine")


async def test_binary_frames_are_refused(connected: Any) -> None:
    async with connected() as peer:
        await peer.socket.send_bytes(b'{"type": "response.cancel"}')
        problem = await peer.error()
        assert (problem["code"], problem["event_id"]) == ("invalid_event", None)
        assert "binary" in problem["message"]


async def test_settings_that_change_nothing_are_accepted(connected: Any) -> None:
    async with connected() as peer:
        harmless = {"tools": [], "tool_choice": "auto", "truncation": "disabled", "audio": None}
        await peer.send("session.update", session={"type": "realtime", **harmless})
        assert (await peer.next())["type"] == "session.updated"


async def test_items_are_placed_as_the_api_says(connected: Any, fast: Latencies) -> None:
    async with connected(MockEngine(fast)) as peer:
        await peer.item("two ", "b")
        await peer.item("three ", "c", previous_item_id="b")
        await peer.item("one ", "a", previous_item_id="root")
        await peer.item("gone ", "x", previous_item_id="a")
        await peer.item("four ", "d")
        await peer.send("conversation.item.delete", item_id="x")
        assert (await peer.last("conversation.item.deleted"))["item_id"] == "x"
        await peer.ask()
        await peer.done()
        assert peer.prompts()[-1] == "<user> one two three four \n<assistant>"


async def test_the_place_of_an_item_is_told(connected: Any) -> None:
    async with connected() as peer:
        for item_id, previous in (("b", None), ("c", "b"), ("a", "root"), ("d", None)):
            await peer.item("word", item_id, previous_item_id=previous)
        added = [await peer.last("conversation.item.added") for _ in range(4)]
        assert [event["previous_item_id"] for event in added] == [None, "b", None, "c"]


async def test_unknown_and_repeated_items_are_refused(connected: Any) -> None:
    async with connected() as peer:
        await peer.item("one", "a")
        await peer.item("again", "a")
        assert (await peer.error())["code"] == "item_create_duplicate_item_id"
        await peer.item("two", "b", previous_item_id="nobody")
        assert (await peer.error())["code"] == "item_create_invalid_previous_item_id"
        await peer.send("conversation.item.delete", item_id="nobody")
        assert (await peer.error())["code"] == "item_delete_invalid_item_id"


async def test_items_can_be_read_back_and_text_is_not_truncated(connected: Any) -> None:
    async with connected() as peer:
        await peer.item("one", "a")
        await peer.send("conversation.item.retrieve", item_id="a")
        item = (await peer.last("conversation.item.retrieved"))["item"]
        assert item["content"] == [{"type": "input_text", "text": "one"}]
        assert (item["id"], item["role"], item["status"]) == ("a", "user", "completed")
        cut = {"item_id": "a", "content_index": 0, "audio_end_ms": 0}
        await peer.send("conversation.item.truncate", **cut)
        problem = await peer.error()
        assert problem["code"] == "invalid_value"
        assert "only audio" in problem["message"]


async def test_a_conversation_whose_items_are_all_deleted_is_empty(connected: Any) -> None:
    async with connected() as peer:
        await peer.item("one two three", "a")
        await peer.send("conversation.item.delete", item_id="a")
        await peer.send("response.create")
        assert (await peer.error())["code"] == "empty_conversation"


async def test_a_context_that_does_not_fit_is_refused_and_the_session_goes_on(
    connected: Any, fast: Latencies
) -> None:
    async with connected(MockEngine(fast, max_model_len=64)) as peer:
        await peer.item("word " * 100, "long")
        problem = await peer.error()
        assert (problem["code"], problem["param"]) == ("context_length_exceeded", "item.content")
        assert "the limit is 64" in problem["message"]
        await peer.send("session.update", session={"instructions": "word " * 100})
        problem = await peer.error()
        assert problem["code"] == "context_length_exceeded"
        assert problem["param"] == "session.instructions"
        await peer.item("short", "a")
        await peer.send("response.create")
        usage = (await peer.done())["usage"]
        assert usage["input_tokens"] + usage["output_tokens"] == 64


async def test_the_longest_context_that_fits_gets_one_token(
    connected: Any, fast: Latencies
) -> None:
    async with connected(MockEngine(fast, max_model_len=64)) as peer:
        await peer.item("word " * 60, "too-long")  # 2 before, 61, 1 after, 1 to answer: 65
        await peer.error()
        await peer.item("word " * 59, "fits")
        await peer.send("response.create")
        usage = (await peer.done())["usage"]
        assert (usage["input_tokens"], usage["output_tokens"]) == (63, 1)


async def test_cancel_ends_the_response_and_frees_the_engine(connected: Any) -> None:
    slow = Latencies(prefill_tokens_per_s=1e6, overhead_s=0.005, tpot_s=0.05)
    async with connected(MockEngine(slow)) as peer:
        await peer.item("Question?", "a")
        await peer.ask(max_output_tokens=1000)
        await peer.until("response.output_text.delta")
        await peer.send("response.cancel")
        response = await peer.done()
        assert response["status"] == "cancelled"
        assert response["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}
        assert peer.engine.open_runs == 0
        assert peer.admission.free_tokens == peer.capacity


async def test_a_response_cancelled_before_it_began_still_says_so(connected: Any) -> None:
    async with connected() as peer:
        await peer.item("Question?", "a")
        await peer.ask(max_output_tokens=1000)
        await peer.send("response.cancel")
        assert (await peer.done())["status"] == "cancelled"
        await peer.until_idle()


async def test_a_closed_socket_frees_the_engine(connected: Any) -> None:
    engine = MockEngine(Latencies(overhead_s=30.0))
    async with connected(engine) as peer:
        await peer.item("word " * 20, "a")
        await peer.until("conversation.item.done")
        while engine.open_runs == 0:
            await asyncio.sleep(0.005)
        await peer.socket.close()
        await peer.until_idle()


async def test_an_engine_failure_is_told_in_response_done(connected: Any, fast: Latencies) -> None:
    class Broken(MockEngine):
        async def run(self, request_id, chunks, cache_salt):  # type: ignore[no-untyped-def]
            async for _ in chunks:
                raise RuntimeError("the engine is on fire")
            yield

    async with connected(Broken(fast)) as peer:
        await peer.item("Question?", "a")
        await peer.send("response.create")
        response = await peer.done()
        assert response["status"] == "failed"
        assert "on fire" in response["status_details"]["error"]["message"]
        await peer.ask()
        assert (await peer.done())["status"] == "failed"  # and not: already one under way


async def test_a_failure_of_the_server_is_told_and_ends_nothing(
    connected: Any, fast: Latencies, caplog: pytest.LogCaptureFixture
) -> None:
    class Forgetful(MockEngine):
        async def tokenize(self, text: str, *, start: bool = False) -> list[int]:
            if "forget" in text:
                raise KeyError(text)
            return await super().tokenize(text, start=start)

    async with connected(Forgetful(fast)) as peer:
        await peer.item("forget this", "a", event_id="mine")
        problem = await peer.error()
        assert (problem["type"], problem["code"]) == ("server_error", "internal_error")
        assert problem["event_id"] == "mine"
        await peer.item("keep this", "a")
        await peer.ask()
        assert (await peer.done())["usage"]["input_tokens"] == 5
    assert "an event could not be served" in caplog.text


async def test_sessions_beyond_the_cache_queue_and_all_are_answered(
    connected: Any, fast: Latencies
) -> None:
    engine = MockEngine(fast, max_model_len=1000, kv_capacity=2000)

    async def one(peer: Any) -> int:
        for number in range(3):
            await peer.item("word " * 20, f"i{number}")
            await asyncio.sleep(0.02)
        await peer.ask(max_output_tokens=2)
        tokens: int = (await peer.done())["usage"]["input_tokens"]
        return tokens

    async with connected(engine) as first:
        others = [await first.another() for _ in range(11)]
        tokens = await asyncio.gather(*(one(peer) for peer in (first, *others)))
        assert set(tokens) == {66}  # <user> | space ; 3 times 20 words and a space ; <assistant>
        await first.until_idle()
