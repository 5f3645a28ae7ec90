"""The mock's Realtime side: exact times, the same answers as over HTTP, one port for both."""

import asyncio
import json
import time
from typing import Any

import aiohttp
import pytest
import uvloop

from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.mock.server import MockServer
from s2l.serving_adapter.realtime.engine import Chunk

LATENCIES = Latencies(ttft_s=0.03, tpot_s=0.005)


async def answer_of(client: aiohttp.ClientSession, text: str, n: int) -> tuple[str, list[float]]:
    """The answer to one item, and when its deltas came, in seconds since the question."""
    async with client.ws_connect("/v1/realtime?model=mock") as socket:
        content = [{"type": "input_text", "text": text}]
        item = {"type": "message", "role": "user", "content": content}
        await socket.send_json({"type": "conversation.item.create", "item": item})
        start_s = time.monotonic()
        await socket.send_json({"type": "response.create", "response": {"max_output_tokens": n}})
        parts, times_s = [], []
        async with asyncio.timeout(10):
            while (event := await socket.receive_json())["type"] != "response.done":
                if event["type"] == "response.output_text.delta":
                    parts.append(event["delta"])
                    times_s.append(time.monotonic() - start_s)
        assert event["response"]["usage"]["output_tokens"] == n
    return "".join(parts), times_s


async def _both_protocols() -> None:
    server = MockServer(MockEngine(LATENCIES))
    async with server, aiohttp.ClientSession(server.url) as client:
        async with client.get("/health") as response:  # the socket may reuse this connection
            assert response.status == 200
        text, times_s = await answer_of(client, "Why is the sky blue?", 5)
        body: dict[str, Any] = {
            "messages": [{"role": "user", "content": "Why is the sky blue?"}],
            "max_tokens": 5,
        }
        async with client.post("/v1/chat/completions", json=body) as response:
            assert (await response.json())["choices"][0]["message"]["content"] == text
        async with client.get("/metrics") as response:
            metrics = await response.text()
        log = await _log(client)
    assert times_s[0] >= 0.03
    assert times_s[4] >= 0.05
    assert 'vllm:generation_tokens_total{engine="0",model_name="mock"} 10.0' in metrics
    assert [entry["endpoint"] for entry in log] == ["realtime", "chat.completion"]
    assert [(entry["outcome"], entry["tokens"]) for entry in log] == [("ok", 5)] * 2
    assert log[0]["first_ns"] - log[0]["arrived_ns"] >= 30_000_000
    assert log[0]["last_ns"] - log[0]["arrived_ns"] >= 50_000_000


async def test_one_port_serves_both_protocols_with_the_same_answers() -> None:
    await _both_protocols()


def test_and_so_it_does_on_uvloop() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_both_protocols())


async def test_a_model_that_is_not_there_is_refused_and_the_subprotocol_agreed_on() -> None:
    async with MockServer(MockEngine(LATENCIES)) as server, aiohttp.ClientSession() as client:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.ws_connect(f"{server.url}/v1/realtime?model=other")
        assert refused.value.status == 404
        offered = ("openai-insecure-api-key.none", "realtime")
        async with client.ws_connect(f"{server.url}/v1/realtime", protocols=offered) as socket:
            assert socket.protocol == "realtime"


async def test_each_response_of_a_session_is_logged_and_one_that_is_given_up_too() -> None:
    server = MockServer(MockEngine(Latencies(ttft_s=0.001, tpot_s=0.001)))
    async with server, aiohttp.ClientSession(server.url) as client:
        async with client.ws_connect("/v1/realtime") as socket:
            content = [{"type": "input_text", "text": "Why?"}]
            item = {"type": "message", "role": "user", "content": content}
            await socket.send_json({"type": "conversation.item.create", "item": item})
            for n in (2, 3, 100_000):
                ask = {"type": "response.create", "response": {"max_output_tokens": n}}
                await socket.send_json(ask)
                while n < 10 and (await socket.receive_json())["type"] != "response.done":
                    continue
        async with client.ws_connect("/v1/realtime"):
            pass
        async with asyncio.timeout(5):
            while len(log := await _log(client)) < 4:
                await asyncio.sleep(0.001)
    assert [(e["number"], e["outcome"]) for e in log] == [
        (1, "ok"),
        (1, "ok"),
        (1, "aborted"),
        (2, "ok"),
    ]
    assert [entry["tokens"] for entry in log][:2] == [2, 3]


async def _log(client: aiohttp.ClientSession) -> list[dict[str, Any]]:
    async with client.get("/mock/log") as response:
        return [json.loads(line) for line in (await response.text()).splitlines()]


async def _run(engine: MockEngine, sizes: list[int], salt: str = "") -> tuple[list[int], list[int]]:
    """Run chunks of these sizes; nanoseconds from each chunk to its first step, and what was found
    in the cache."""
    sent: list[int] = []
    [word] = engine.vocabulary.encode(" w")

    async def chunks() -> Any:
        for i, size in enumerate(sizes):
            sent.append(time.monotonic_ns())
            last = i == len(sizes) - 1
            yield Chunk((word,) * size, 1, 0.0, last)

    took_ns, cached = [], []
    async for step in engine.run("r", chunks(), salt):
        took_ns.append(time.monotonic_ns() - sent[len(took_ns)])
        cached.append(step.cached_tokens)
    return took_ns, cached


async def test_chunks_take_as_long_as_their_tokens_and_never_less() -> None:
    engine = MockEngine(Latencies(prefill_tokens_per_s=10_000, overhead_s=0.002))
    took_ns, cached = await _run(engine, [30, 80, 10])
    assert all(
        took >= due for took, due in zip(took_ns, (5_000_000, 10_000_000, 3_000_000), strict=True)
    )
    assert max(took_ns) < 200_000_000
    assert cached == [0, 0, 0]
    assert (engine.open_runs, engine.held_tokens, engine.prompt_tokens) == (0, 0, 120)
    engine.close()


async def test_with_a_constant_ttft_early_chunks_are_free() -> None:
    engine = MockEngine(Latencies(ttft_s=0.05))
    took_ns, _ = await _run(engine, [500, 500, 1])
    assert took_ns[0] + took_ns[1] < 50_000_000 <= took_ns[2]
    engine.close()


async def test_a_prefix_cache_shortens_the_first_chunk_of_the_same_salt() -> None:
    latencies = Latencies(prefill_tokens_per_s=1000, overhead_s=0.0)
    engine = MockEngine(latencies, prefix_cache=True)
    assert (await _run(engine, [64, 36]))[1] == [0, 0]
    took_ns, cached = await _run(engine, [101])
    assert cached == [96]
    assert 5_000_000 <= took_ns[0] < 101_000_000
    assert (await _run(engine, [10, 1], "other"))[1] == [0, 0]
    engine.close()


async def test_only_the_newest_runs_are_kept() -> None:
    engine = MockEngine(Latencies(ttft_s=0.0))
    for i in range(4200):
        engine._begin(str(i))
        engine.open_runs -= 1
    assert len(engine.runs) == 4096
    assert list(engine.runs)[-1] == "4199"
