"""The Realtime server over a real WebSocket: each event is answered as the API does, or refused."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.mock.server import MockServer

FAST = Latencies(prefill_tokens_per_s=1e6, overhead_s=0.005, tpot_s=0.001)


class Peer:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse, server: MockServer) -> None:
        self.socket = socket
        self.server = server

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send_str(json.dumps({"type": kind, **fields}))

    async def item(self, text: str, item_id: str | None = None, **fields: Any) -> None:
        content = [{"type": "input_text", "text": text}]
        item = {"type": "message", "role": "user", "content": content}
        if item_id:
            item["id"] = item_id
        await self.send("conversation.item.create", item=item, **fields)

    async def next(self) -> dict[str, Any]:
        message = await asyncio.wait_for(self.socket.receive(), 5)
        assert message.type is aiohttp.WSMsgType.TEXT, message
        event: dict[str, Any] = json.loads(message.data)
        return event

    async def until(self, kind: str) -> list[dict[str, Any]]:
        seen = [await self.next()]
        while seen[-1]["type"] != kind:
            seen.append(await self.next())
        return seen

    async def error(self) -> dict[str, Any]:
        problem: dict[str, Any] = (await self.until("error"))[-1]["error"]
        return problem


@asynccontextmanager
async def connected(engine: MockEngine | None = None) -> AsyncIterator[Peer]:
    async with (
        MockServer(engine or MockEngine(FAST)) as server,
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{server.url}/v1/realtime") as socket,
    ):
        peer = Peer(socket, server)
        assert (await peer.next())["type"] == "session.created"
        yield peer


def _kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


async def test_a_text_session_gives_the_events_of_the_api_in_order() -> None:
    async with connected() as peer:
        await peer.send("session.update", session={"type": "realtime", "instructions": "Answer."})
        assert (await peer.next())["session"]["instructions"] == "Answer."
        await peer.item("Page one.\n", "a")
        await peer.item("Question?", "b")
        await peer.send("response.create", response={"max_output_tokens": 2})
        events = await peer.until("response.done")
        assert _kinds(events) == [
            "conversation.item.added",
            "conversation.item.done",
            "conversation.item.added",
            "conversation.item.done",
            "response.created",
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
        assert response["output"][0]["content"][0]["text"] == deltas
        assert (response["status"], response["status_details"]["reason"]) == (
            "incomplete",
            "max_output_tokens",
        )
        # <system> | Answer. | <user> | space ; Page | one. | newline ; Question? ; <assistant>
        assert response["usage"]["input_tokens"] == 9
        assert response["usage"]["output_tokens"] == 2
        assert len({event["event_id"] for event in events}) == len(events)


async def test_extensions_are_sent_only_to_those_who_ask() -> None:
    async with connected() as peer:
        await peer.item("word " * 20, "a")
        await peer.send("response.create", response={"max_output_tokens": 1})
        events = await peer.until("response.done")
        assert not any(e["type"].startswith("s2l") or "s2l" in e for e in events)
    async with connected() as peer:
        await peer.send("session.update", session={"type": "realtime", "s2l": {"report": True}})
        await peer.item("word " * 20, "a")
        report = (await peer.until("s2l.prefilled"))[-1]
        assert report["item_ids"] == ["a"]
        await peer.item("Question?", "b")
        await peer.send("response.create", response={"max_output_tokens": 1})
        events = await peer.until("response.done")
        assert [e["s2l"] for e in events if "delta" in e] == [{"tokens": 1}]
        assert events[-1]["response"]["usage"]["input_token_details"]["cached_tokens"] == 23


@pytest.mark.parametrize(
    ("frame", "code", "message"),
    [
        ("not json", "invalid_event", "not a valid event"),
        ("[]", "invalid_event", "not a valid event"),
        ("{}", "invalid_event", "not a valid event"),
        ('{"type": "session.fly"}', "unknown_event", "unknown event type 'session.fly'"),
        ('{"type": "response.create", "response": 3}', "invalid_event", "not a valid event"),
        ('{"type": "conversation.item.create"}', "invalid_event", "missing required field"),
        (
            '{"type": "conversation.item.delete", "item_id": "a"}',
            "item_not_found",
            "there is no item 'a'",
        ),
        ('{"type": "response.cancel"}', "response_cancel_not_active", "no response"),
        ('{"type": "response.create"}', "empty_conversation", "create an item before"),
        (
            '{"type": "session.update", "session": {"type": "realtime", "model": "other"}}',
            "model_not_found",
            "this server serves 'mock', not 'other'",
        ),
        (
            '{"type": "session.update", "session": {"output_modalities": ["audio"]}}',
            "not_supported",
            "output_modalities",
        ),
    ],
)
async def test_bad_events_are_refused_in_the_error_form(
    frame: str, code: str, message: str
) -> None:
    async with connected() as peer:
        await peer.socket.send_str(frame)
        problem = await peer.error()
        assert problem["code"] == code
        assert message in problem["message"]
        await peer.item("still here", "a")
        assert (await peer.next())["type"] == "conversation.item.added"


@pytest.mark.parametrize(
    ("item", "code"),
    [
        ({"type": "message", "role": "system", "content": []}, "not_supported"),
        ({"type": "function_call", "content": []}, "not_supported"),
        ({"type": "message", "role": "user", "content": []}, "invalid_value"),
        (
            {"type": "message", "role": "user", "content": [{"type": "input_audio"}]},
            "invalid_value",
        ),
    ],
)
async def test_items_that_are_not_users_text_are_refused(item: dict[str, Any], code: str) -> None:
    async with connected() as peer:
        await peer.send("conversation.item.create", item=item, event_id="mine")
        problem = await peer.error()
        assert (problem["code"], problem["event_id"]) == (code, "mine")


async def test_items_are_placed_as_the_api_says() -> None:
    engine = MockEngine(FAST)
    async with connected(engine) as peer:
        await peer.item("two ", "b")
        await peer.item("three ", "c", previous_item_id="b")
        await peer.item("one ", "a", previous_item_id="root")
        await peer.item("gone ", "x", previous_item_id="a")
        await peer.item("four ", "d")
        await peer.send("conversation.item.delete", item_id="x")
        deleted = (await peer.until("conversation.item.deleted"))[-1]
        assert deleted["item_id"] == "x"
        await peer.send("response.create", response={"max_output_tokens": 1})
        await peer.until("response.done")
    held = engine.vocabulary.decode(sum(list(engine.runs.values())[-1], ()))
    assert held == "<system> \n<user> one two three four \n<assistant>"


async def test_the_place_of_an_item_is_told() -> None:
    async with connected() as peer:
        for item_id, previous in (("b", None), ("c", "b"), ("a", "root"), ("d", None)):
            await peer.item("word", item_id, previous_item_id=previous)
        added = [(await peer.until("conversation.item.added"))[-1] for _ in range(4)]
        assert [event["previous_item_id"] for event in added] == [None, "b", None, "c"]


async def test_unknown_and_repeated_items_are_refused() -> None:
    async with connected() as peer:
        await peer.item("one", "a")
        await peer.item("again", "a")
        assert (await peer.error())["code"] == "duplicate_item"
        await peer.item("two", "b", previous_item_id="nobody")
        assert (await peer.error())["code"] == "item_not_found"
        await peer.send("conversation.item.delete", item_id="nobody")
        assert (await peer.error())["code"] == "item_not_found"


async def test_a_conversation_whose_items_are_all_deleted_is_empty() -> None:
    async with connected() as peer:
        await peer.item("one two three", "a")
        await peer.send("conversation.item.delete", item_id="a")
        await peer.send("response.create")
        assert (await peer.error())["code"] == "empty_conversation"


async def test_a_context_that_does_not_fit_is_refused_and_the_session_goes_on() -> None:
    async with connected(MockEngine(FAST, max_model_len=64)) as peer:
        await peer.item("word " * 100, "long")
        problem = await peer.error()
        assert problem["code"] == "context_length_exceeded"
        assert "the limit is 64" in problem["message"]
        await peer.item("short", "a")
        await peer.send("response.create")
        response = (await peer.until("response.done"))[-1]["response"]
        usage = response["usage"]
        assert usage["input_tokens"] + usage["output_tokens"] == 64


async def test_cancel_ends_the_response_and_frees_the_engine() -> None:
    slow = Latencies(prefill_tokens_per_s=1e6, overhead_s=0.005, tpot_s=0.05)
    async with connected(MockEngine(slow)) as peer:
        await peer.item("Question?", "a")
        await peer.send("response.create", response={"max_output_tokens": 1000})
        await peer.until("response.output_text.delta")
        await peer.send("response.cancel")
        response = (await peer.until("response.done"))[-1]["response"]
        assert response["status"] == "cancelled"
        assert response["status_details"]["reason"] == "client_cancelled"
        assert peer.server.engine.open_runs == 0
        assert peer.server.admission.free_tokens == peer.server.engine.info.kv_capacity


async def test_a_second_response_is_refused_clearly() -> None:
    async with connected() as peer:
        await peer.item("Question?", "a")
        await peer.send("response.create", response={"max_output_tokens": 1})
        await peer.until("response.done")
        await peer.send("response.create")
        assert "a second response" in (await peer.error())["message"]


async def test_a_closed_socket_frees_the_engine() -> None:
    engine = MockEngine(Latencies(overhead_s=30.0))
    async with connected(engine) as peer:
        await peer.item("word " * 20, "a")
        await peer.until("conversation.item.done")
        while engine.open_runs == 0:
            await asyncio.sleep(0.005)
        await peer.socket.close()
        while peer.server.admission.free_tokens != engine.info.kv_capacity:
            await asyncio.sleep(0.005)
        assert engine.open_runs == 0


async def test_an_engine_failure_is_told_in_response_done() -> None:
    class Broken(MockEngine):
        async def run(self, request_id, chunks, cache_salt):  # type: ignore[no-untyped-def]
            async for _ in chunks:
                raise RuntimeError("the engine is on fire")
            yield

    async with connected(Broken(FAST)) as peer:
        await peer.item("Question?", "a")
        await peer.send("response.create")
        response = (await peer.until("response.done"))[-1]["response"]
        assert response["status"] == "failed"
        assert "on fire" in response["status_details"]["error"]["message"]


async def test_sessions_beyond_the_cache_queue_and_all_are_answered() -> None:
    engine = MockEngine(FAST, max_model_len=1000, kv_capacity=2000)
    async with MockServer(engine) as server, aiohttp.ClientSession() as http:

        async def one() -> int:
            async with http.ws_connect(f"{server.url}/v1/realtime") as socket:
                peer = Peer(socket, server)
                for number in range(3):
                    await peer.item("word " * 20, f"i{number}")
                    await asyncio.sleep(0.02)
                await peer.send("response.create", response={"max_output_tokens": 2})
                done = (await peer.until("response.done"))[-1]
                tokens: int = done["response"]["usage"]["input_tokens"]
                return tokens

        tokens = await asyncio.gather(*(one() for _ in range(12)))
        assert len(set(tokens)) == 1
        assert server.admission.free_tokens == 2000
