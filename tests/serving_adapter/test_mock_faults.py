"""Faults come when and to whom the plan says, and look to a client as they should."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType, WSServerHandshakeError

from s2l.serving_adapter.mock.backend import HttpOptions
from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.mock.faults import Fault, FaultPlan
from s2l.serving_adapter.mock.server import MockServer

MS = 1_000_000
LATENCIES = Latencies(ttft_s=0.02, tpot_s=0.001)
STREAMED = {"prompt": "a", "max_tokens": 8, "stream": True}
DONE = "data: [DONE]\n\n"


@asynccontextmanager
async def failing(*faults: str) -> AsyncIterator[tuple[MockServer, aiohttp.ClientSession]]:
    """A mock with these faults, and a client."""
    options = HttpOptions(faults=FaultPlan.parse(faults))
    async with (
        MockServer(MockEngine(LATENCIES), http=options) as server,
        aiohttp.ClientSession(server.url) as client,
    ):
        yield server, client


async def ask(client: aiohttp.ClientSession, body: dict[str, Any] | None = None) -> str:
    """The whole answer."""
    async with client.post("/v1/completions", json=body or STREAMED) as response:
        return await response.text()


async def part_of(client: aiohttp.ClientSession) -> tuple[bytes, Exception | None]:
    """What comes of an answer, and what ends it."""
    got = b""
    try:
        async with client.post("/v1/completions", json=STREAMED) as response:
            async for data in response.content.iter_any():
                got += data
    except aiohttp.ClientError as error:
        return got, error
    return got, None


async def outcomes(client: aiohttp.ClientSession) -> list[str]:
    """How each request ended, by the mock's own log."""
    async with client.get("/mock/log") as response:
        return [json.loads(line)["outcome"] for line in (await response.text()).splitlines()]


def test_a_plan_is_read_from_a_few_words() -> None:
    plan = FaultPlan.parse(["500@10%", "429@5%:retry-after=1", "stall@12s:2.5s", "die@20s"], seed=4)
    assert plan.faults == (
        Fault("status", share=0.1, status=500),
        Fault("status", share=0.05, status=429, retry_after_s=1),
        Fault("stall", at_s=12, duration_s=2.5),
        Fault("die", at_s=20),
    )
    assert [fault.kind for fault in plan.timed()] == ["stall", "die"]


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ("cut", "'cut' is not a fault; write it like 500@10%"),
        ("cut@0%", "a share is above 0 % and at most 100 %"),
        ("cut@101%", "a share is above 0 % and at most 100 %"),
        ("cot@5%", "'cot' is not a fault; there are a status, drop, hang"),
        ("200@5%", "a status is from 400 to 599"),
        ("500@5s", "a status hits a share, such as 500@10%"),
        ("cut@5s", "cut hits a share, such as cut@10%"),
        ("die@5%", "die comes at a time, such as die@12s"),
    ],
)
def test_a_wrong_fault_is_told_in_a_line(spec: str, what: str) -> None:
    with pytest.raises(ValueError, match=what.replace("(", r"\(")):
        Fault.parse(spec)


def test_shares_of_more_than_all_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 100 % together"):
        FaultPlan.parse(["cut@60%", "hang@60%"])


def test_faults_hit_their_share_and_the_same_requests_each_time() -> None:
    plan = FaultPlan.parse(["500@10%", "cut@30%"], seed=1)
    hit = [plan.of(number) for number in range(10_000)]
    kinds = [fault.kind if fault else "" for fault in hit]
    assert abs(kinds.count("status") - 1000) < 100
    assert abs(kinds.count("cut") - 3000) < 200
    assert hit == [FaultPlan.parse(["500@10%", "cut@30%"], seed=1).of(n) for n in range(10_000)]
    assert hit != [FaultPlan.parse(["500@10%", "cut@30%"], seed=2).of(n) for n in range(10_000)]


async def test_statuses_come_at_once_with_the_wait_that_was_asked_for() -> None:
    async with failing("429@100%:retry-after=7") as (_, client):
        for _ in range(2):
            async with client.post("/v1/completions", json=STREAMED) as response:
                assert (response.status, response.headers["retry-after"]) == (429, "7")
                error = (await response.json())["error"]
        assert (error["type"], error["code"]) == ("RateLimitError", 429)
        assert await outcomes(client) == ["429", "429"]


async def test_dropped_requests_get_no_byte() -> None:
    async with failing("drop@100%") as (_, client):
        got, error = await part_of(client)
        assert got == b""
        assert isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError)
        assert await outcomes(client) == ["drop"]


async def test_hanging_requests_end_with_the_client() -> None:
    async with failing("hang@100%") as (_, client):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await ask(client)
        async with asyncio.timeout(5):
            while not (ended := await outcomes(client)):
                await asyncio.sleep(0.001)
        assert ended == ["hang"]


async def test_a_cut_answer_ends_half_way_without_an_end() -> None:
    async with failing("cut@100%") as (server, client):
        got, error = await part_of(client)
        assert got.count(b'"text"') == 4
        assert isinstance(error, aiohttp.ClientError)
        assert await outcomes(client) == ["cut"]
        assert server.backend.scheduler.running == 0


async def test_a_cut_answer_that_is_not_streamed_is_shorter_than_it_says() -> None:
    async with failing("cut@100%") as (_, client):
        with pytest.raises(aiohttp.ClientPayloadError):
            await ask(client, {"prompt": "a", "max_tokens": 8})


async def test_garbage_stands_between_good_events() -> None:
    async with failing("garbage@100%") as (_, client):
        got, error = await part_of(client)
        assert error is None
        events = got.split(b"\n\n")
        assert [b'"text"' in event for event in events[:9]] == [True] * 4 + [False] + [True] * 4
        with pytest.raises(UnicodeDecodeError):
            events[4].decode()
        assert events[9] == b"data: [DONE]"


async def test_an_error_can_take_the_place_of_the_second_half() -> None:
    async with failing("error-in-stream@100%") as (_, client):
        events = (await ask(client)).split("\n\n")
        assert ['"text"' in event for event in events[:4]] == [True] * 4
        assert json.loads(events[4].removeprefix("data: "))["error"]["code"] == 500
        assert events[5] == "data: [DONE]"
        async with client.post("/v1/completions", json={"prompt": "a"}) as response:
            assert response.status == 500


async def test_a_stream_can_end_without_its_end_marker() -> None:
    async with failing("no-done@100%") as (_, client):
        text = await ask(client)
        assert text.count('"text"') == 8
        assert DONE not in text


async def test_a_single_token_can_fail_too() -> None:
    one = STREAMED | {"max_tokens": 1}
    async with failing("error-in-stream@100%") as (_, client):
        assert (await ask(client, one)).startswith('data: {"error"')
    async with failing("cut@100%") as (_, client):
        with pytest.raises(aiohttp.ClientPayloadError):
            await ask(client, one)


async def test_slow_headers_delay_the_answer_by_so_much() -> None:
    async with failing("slow-headers@100%:0.5s") as (server, client):
        host, port = server.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        body = json.dumps(STREAMED).encode()
        writer.write(
            b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b"
            % (len(body), body)
        )
        early = await reader.read(1000)
        late = await reader.readuntil(b"0\r\n\r\n")
        writer.close()
        assert early.startswith(b"HTTP/1.1 200")
        assert b"\r\n\r\n" not in early
        assert (early + late).count(b'"text"') == 8
        async with client.get("/mock/log") as response:
            entry = json.loads(await response.text())
        assert entry["first_due_ns"] == entry["arrived_ns"] + (500 + 20) * MS


async def test_a_stall_holds_back_what_is_due_in_it() -> None:
    async with failing("stall@0.1s:0.3s") as (_, client):
        for _ in range(10):
            await ask(client)  # 27 ms each: some before, one in the stall, some after
        async with client.get("/mock/log") as response:
            entries = [json.loads(line) for line in (await response.text()).splitlines()]
    # Whichever request met the stall was late by it, or came to be read after it.
    late_ms = [(e["last_ns"] - e["last_due_ns"]) / MS for e in entries]
    gaps_ms = [(b["arrived_ns"] - a["last_ns"]) / MS for a, b in pairwise(entries)]
    assert max(late_ms + gaps_ms) > 250


async def test_a_server_that_dies_cuts_everything_and_listens_no_more() -> None:
    async with failing("die@0.1s") as (server, client):
        long = STREAMED | {"max_tokens": 10_000}
        with pytest.raises(aiohttp.ClientError):
            await ask(client, long)
        assert server.died.is_set()
        with pytest.raises(aiohttp.ClientConnectorError):
            await client.get("/health")


async def _realtime(client: aiohttp.ClientSession) -> list[str]:
    """One short session; what came as text frames."""
    frames = []
    async with client.ws_connect("/v1/realtime") as socket:
        content = [{"type": "input_text", "text": "a b c"}]
        item = {"type": "message", "role": "user", "content": content}
        await socket.send_json({"type": "conversation.item.create", "item": item})
        await socket.send_json({"type": "response.create", "response": {"max_output_tokens": 6}})
        while (frame := await socket.receive(5)).type is WSMsgType.TEXT:
            frames.append(frame.data)
            if '"response.done"' in frame.data:
                break
    return frames


def _deltas(frames: list[str]) -> int:
    return sum('"type":"response.output_text.delta"' in frame for frame in frames)


async def test_realtime_sessions_are_refused_dropped_cut_and_spoiled() -> None:
    async with failing("503@100%:retry-after=2") as (_, client):
        with pytest.raises(WSServerHandshakeError) as refused:
            await _realtime(client)
        assert refused.value.status == 503
        assert refused.value.headers is not None
        assert refused.value.headers["retry-after"] == "2"
    async with failing("drop@100%") as (_, client):
        with pytest.raises((aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)):
            await _realtime(client)
    async with failing("cut@100%") as (_, client):
        frames = await _realtime(client)
        assert _deltas(frames) == 1
        assert "response.done" not in frames[-1]
    async with failing("garbage@100%") as (_, client):
        frames = await _realtime(client)
        with pytest.raises(json.JSONDecodeError):
            [json.loads(frame) for frame in frames]
        assert _deltas(frames) == 6


async def test_a_hanging_realtime_session_ends_with_the_client() -> None:
    async with failing("hang@100%") as (_, client):
        waiting = asyncio.create_task(_realtime(client))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(waiting, 0.1)
        async with asyncio.timeout(5):
            while (ended := await outcomes(client)) == []:
                await asyncio.sleep(0.01)
        assert ended == ["hang"]


async def test_death_cuts_realtime_sessions_too() -> None:
    async with failing("die@1s") as (_, client), client.ws_connect("/v1/realtime") as socket:
        assert json.loads((await socket.receive(5)).data)["type"] == "session.created"
        frame = await socket.receive(5)
        assert frame.type in (WSMsgType.CLOSED, WSMsgType.CLOSE, WSMsgType.ERROR)
        assert socket.close_code == 1006
