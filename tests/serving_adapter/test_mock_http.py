"""The mock's OpenAI side over real sockets: exact bytes, exact times, and the official client."""

import asyncio
import hashlib
import itertools
import json
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError

from s2l.serving_adapter.mock.backend import HttpOptions
from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.mock.server import MockServer

FAST = Latencies(prefill_tokens_per_s=10_000.0, overhead_s=0.003, tpot_s=0.001)
MS = 1_000_000
Server = tuple[MockServer, aiohttp.ClientSession]


@asynccontextmanager
async def serving(
    latencies: Latencies = FAST, http: HttpOptions | None = None, **engine: Any
) -> AsyncIterator[Server]:
    """A mock and a client of it."""
    server = MockServer(MockEngine(latencies, **engine), http=http)
    async with server, aiohttp.ClientSession(server.url) as client:
        yield server, client


async def raw(url: str, sent: bytes, *, until: bytes) -> bytes:
    """What comes back on a connection of its own, up to and with ``until``."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    async with asyncio.timeout(5):
        got = await reader.readuntil(until)
    writer.close()
    return re.sub(rb'"created":\d{10}', b'"created":0', got)


def post(path: str, body: dict[str, Any] | bytes, *headers: str) -> bytes:
    """The bytes of a request."""
    encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "host: x", f"content-length: {len(encoded)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + encoded


def digest(text: str) -> str:
    """The first word of the answer to a prompt."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


async def log_of(client: aiohttp.ClientSession) -> list[dict[str, Any]]:
    """The mock's own times."""
    async with client.get("/mock/log") as response:
        return [json.loads(line) for line in (await response.text()).splitlines()]


DEEP = b'{"prompt": "a", "x": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"
HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)


async def test_a_streamed_completion_byte_for_byte() -> None:
    body = {
        "model": "mock",
        "prompt": "one two three",
        "max_tokens": 3,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    async with serving() as (server, _):
        request = post("/v1/completions", body, "X-Request-Id: abc-7")
        got = await raw(server.url, request, until=b"\r\n0\r\n\r\n")

    def event(text: str, finish: str = "null") -> str:
        return (
            'data: {"id":"cmpl-abc-7","object":"text_completion","created":0,"model":"mock",'
            f'"choices":[{{"index":0,"text":"{text}","logprobs":null,"finish_reason":{finish},'
            '"stop_reason":null}]}\n\n'
        )

    usage = (
        'data: {"id":"cmpl-abc-7","object":"text_completion","created":0,"model":"mock",'
        '"choices":[],"usage":{"prompt_tokens":3,"total_tokens":6,"completion_tokens":3,'
        '"prompt_tokens_details":{"cached_tokens":0}}}\n\n'
    )
    first, middle = event(digest("one two three")), event(" word1")
    last = event(" word2", '"length"') + usage + "data: [DONE]\n\n"
    expected = HEAD
    for data in (first, middle, last):
        size = len(data) + 9 * data.count('"created":0')  # digits taken out of what was got
        expected += f"{size:x}\r\n{data}\r\n".encode()
    assert got == expected + b"0\r\n\r\n"


async def test_a_whole_chat_completion_byte_for_byte() -> None:
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 2}
    async with serving() as (server, _):
        request = post("/v1/chat/completions", body, "X-Request-Id: r")
        got = await raw(server.url, request, until=b"}}}")
    answer = digest("<user> hello\n<assistant>") + " word1"
    expected = (
        '{"id":"chatcmpl-r","object":"chat.completion","created":0,"model":"mock","choices":'
        f'[{{"index":0,"message":{{"role":"assistant","content":"{answer}"}},"logprobs":null,'
        '"finish_reason":"length","stop_reason":null}],"usage":{"prompt_tokens":3,'
        '"total_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}'
    ).encode()
    size = len(expected) + 9
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {size}\r\n\r\n"
    assert got == head.encode() + expected


async def test_the_official_client_streams_and_waits_completions_and_chats() -> None:
    async with serving() as (server, _), AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k") as c:
        whole = await c.completions.create(model="mock", prompt="a b", max_tokens=4)
        stream = await c.completions.create(
            model="mock",
            prompt="a b",
            max_tokens=4,
            stream=True,
            stream_options={"include_usage": True},
        )
        events = [event async for event in stream]
        assert [len(event.choices) for event in events] == [1, 1, 1, 1, 0]
        text = "".join(choice.text for event in events for choice in event.choices)
        assert text == whole.choices[0].text == f"{digest('a b')} word1 word2 word3"
        assert events[3].choices[0].finish_reason == whole.choices[0].finish_reason == "length"
        assert events[4].usage == whole.usage
        assert whole.usage is not None
        assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (2, 4)

        messages: Any = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Why?"}]},
        ]
        chat = await c.chat.completions.create(model="mock", messages=messages)
        chunks = [
            chunk.choices[0]
            async for chunk in await c.chat.completions.create(
                model="mock", messages=messages, stream=True, max_completion_tokens=16
            )
        ]
        assert [choice.delta.role for choice in chunks[:2]] == ["assistant", None]
        text = "".join(choice.delta.content or "" for choice in chunks)
        assert text == chat.choices[0].message.content
        assert text.startswith(digest("<system> Be brief.\n<user> Why?\n<assistant>"))
        assert (chat.choices[0].finish_reason, chunks[-1].finish_reason) == ("stop", "length")
        assert [model.id for model in (await c.models.list()).data] == ["mock"]


async def test_bad_requests_are_refused_in_the_servers_words() -> None:
    async with (
        serving(max_model_len=20) as (server, _),
        AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0) as c,
    ):
        with pytest.raises(NotFoundError, match="The model `other` does not exist"):
            await c.completions.create(model="other", prompt="a")
        with pytest.raises(BadRequestError, match="maximum context length is 20 tokens"):
            await c.completions.create(model="mock", prompt="a " * 10, max_tokens=10)
        with pytest.raises(BadRequestError, match="max_tokens must be at least 1"):
            await c.completions.create(model="mock", prompt="a", max_tokens=0)
        with pytest.raises(BadRequestError, match="one answer a request"):
            await c.completions.create(model="mock", prompt="a", n=2)
        with pytest.raises(BadRequestError, match="one prompt a request"):
            await c.completions.create(model="mock", prompt=["a", "b"])
        with pytest.raises(BadRequestError, match="prompt"):
            await c.completions.create(model="mock", prompt={"no": "prompt"})  # type: ignore[call-overload]


async def test_the_tokenizer_speaks_as_vllms_and_its_ids_are_prompts() -> None:
    async with serving(max_model_len=100) as (_, client):
        async with client.post("/tokenize", json={"model": "mock", "prompt": " a b\nc"}) as got:
            tokens = await got.json()
        assert tokens == {
            "count": 3,
            "max_model_len": 100,
            "tokens": [0, 1, 2],
            "token_strs": None,
        }
        async with client.post("/detokenize", json={"tokens": [0, 2]}) as got:
            assert await got.json() == {"prompt": " a\nc"}
        body = {"prompt": [0, 1, 2], "max_tokens": 1}
        async with client.post("/v1/completions", json=body) as got:
            answer = await got.json()
        assert answer["choices"][0]["text"] == digest(" a b\nc")
        assert answer["usage"]["prompt_tokens"] == 3
        for path, ids in (("/detokenize", {"tokens": [3]}), ("/v1/completions", {"prompt": [-1]})):
            async with client.post(path, json=ids) as got:
                assert got.status == 400
                assert "out of vocabulary" in (await got.json())["error"]["message"]


async def test_times_are_exact_and_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    options = HttpOptions(log_path=path, prefix_cache=False)
    async with serving(http=options) as (_, client):
        body = {"prompt": "word " * 20, "max_tokens": 6, "stream": True}
        headers = {"X-Request-Id": "mine"}
        async with client.post("/v1/completions", json=body, headers=headers) as response:
            await response.read()
        [entry] = await log_of(client)
        async with client.get("/mock/timing") as response:
            timing = await response.json()
    assert (entry["request_id"], entry["outcome"], entry["tokens"]) == ("mine", "ok", 6)
    arrived_ns = entry["arrived_ns"]
    assert entry["start_ns"] == arrived_ns
    assert entry["first_due_ns"] == arrived_ns + 3 * MS + 21 * MS // 10  # 20 words and a space
    assert entry["last_due_ns"] == entry["first_due_ns"] + 5 * MS
    assert entry["first_due_ns"] <= entry["first_ns"] <= entry["last_ns"]
    assert entry["last_due_ns"] <= entry["last_ns"]
    assert timing["events"] == 6
    assert json.loads(path.read_text()) == entry


async def test_several_tokens_in_an_event_come_as_often_as_they_take() -> None:
    async with serving(http=HttpOptions(tokens_per_event=4)) as (_, client):
        body = {"prompt": "a", "max_tokens": 10, "stream": True}
        async with client.post("/v1/completions", json=body) as response:
            lines = (await response.text()).split("\n\n")
        [entry] = await log_of(client)
    texts = [json.loads(line[6:])["choices"][0]["text"] for line in lines[:3]]
    assert texts == [
        f"{digest('a')} word1 word2 word3",
        " word4 word5 word6 word7",
        " word8 word9",
    ]
    assert entry["last_due_ns"] - entry["first_due_ns"] == 8 * MS


async def test_usage_can_come_with_every_event() -> None:
    async with serving() as (_, client):
        options = {"include_usage": True, "continuous_usage_stats": True}
        body = {"prompt": "a", "max_tokens": 3, "stream": True, "stream_options": options}
        async with client.post("/v1/completions", json=body) as response:
            lines = (await response.text()).split("\n\n")[:4]
    usages = [json.loads(line[6:])["usage"]["completion_tokens"] for line in lines]
    assert usages == [1, 2, 3, 3]


async def test_prefixes_are_reused_under_the_same_salt_until_the_cache_is_reset() -> None:
    async def cached(client: aiohttp.ClientSession, salt: str) -> int:
        body = {"prompt": "word " * 40, "max_tokens": 1, "cache_salt": salt}
        async with client.post("/v1/completions", json=body) as response:
            usage = (await response.json())["usage"]
        return int(usage["prompt_tokens_details"]["cached_tokens"])

    async with serving() as (_, client):
        assert [await cached(client, salt) for salt in ("x", "x", "y", "x")] == [0, 32, 0, 32]
        async with client.post("/reset_prefix_cache") as response:
            assert await response.json() == {"success": True}
        assert await cached(client, "x") == 0
        [first, second, *_] = await log_of(client)
    assert second["last_due_ns"] - second["start_ns"] == 3 * MS + 9 * MS // 10
    assert first["last_due_ns"] - first["start_ns"] == 3 * MS + 41 * MS // 10


async def test_a_queue_beyond_the_concurrency_is_exact_and_shows_in_the_metrics() -> None:
    slow = Latencies(ttft_s=0.05, tpot_s=0.0)
    async with serving(slow, HttpOptions(max_concurrency=1)) as (_, client):

        async def ask(prompt: str) -> None:
            body = {"prompt": prompt, "max_tokens": 2, "stream": True}
            async with client.post("/v1/completions", json=body) as response:
                await response.read()

        asking = [asyncio.create_task(ask(prompt)) for prompt in "abc"]
        async with client.get("/metrics") as response:
            while 'vllm:num_requests_waiting{engine="0",model_name="mock"} 2.0' not in (
                text := await response.text()
            ):
                response = await client.get("/metrics")
        assert 'vllm:num_requests_running{engine="0",model_name="mock"} 1.0' in text
        await asyncio.gather(*asking)
        entries = await log_of(client)
        async with client.get("/metrics") as response:
            text = await response.text()
    for before, after in itertools.pairwise(entries):
        assert after["start_ns"] == before["last_due_ns"]
        assert after["first_due_ns"] == after["start_ns"] + 50 * MS
    assert 'vllm:generation_tokens_total{engine="0",model_name="mock"} 6.0' in text
    assert 'vllm:prompt_tokens_total{engine="0",model_name="mock"} 3.0' in text
    assert 'vllm:kv_cache_usage_perc{engine="0",model_name="mock"} 0.0' in text
    assert "s2l_sessions" in text


async def test_requests_wait_for_room_in_the_kv_cache() -> None:
    # 160 tokens: a request of 100 and one of 64 do not fit beside each other.
    async with serving(Latencies(ttft_s=0.03, tpot_s=0.0), kv_capacity=160) as (_, client):

        async def ask(words: int) -> None:
            body = {"prompt": "word " * words, "max_tokens": 3, "cache_salt": str(words)}
            async with client.post("/v1/completions", json=body) as response:
                assert response.status == 200

        first = asyncio.create_task(ask(96))
        while "kv_cache_usage_perc" not in (text := await (await client.get("/metrics")).text()):
            continue
        while 'kv_cache_usage_perc{engine="0",model_name="mock"} 0.7' not in text:
            text = await (await client.get("/metrics")).text()
        await asyncio.gather(first, ask(61))
        one, two = await log_of(client)
    assert two["arrived_ns"] < one["last_due_ns"] == two["start_ns"]


async def test_a_client_that_is_gone_frees_what_it_held() -> None:
    async with serving(Latencies(ttft_s=30.0), HttpOptions(max_concurrency=1)) as (server, client):
        host, port = server.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(post("/v1/completions", {"prompt": "a", "stream": True}))
        await reader.readuntil(b"\r\n\r\n")
        assert server.backend.scheduler.running == 1
        writer.close()
        async with asyncio.timeout(5):
            while not (entries := await log_of(client)):
                await asyncio.sleep(0.001)
        assert (entries[0]["outcome"], entries[0]["tokens"]) == ("aborted", 0)
        assert server.backend.scheduler.running == 0


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with serving() as (server, _):
        requests = b"".join(
            post("/v1/completions", {"prompt": p, "max_tokens": 1, "stream": p == "b"})
            for p in ("a", "b", "c")
        )
        health = b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        got = await raw(server.url, requests + health, until=b"content-length: 0\r\n\r\n")
    order = [digest(p).encode() for p in "abc"]
    places = [got.index(word) for word in order]
    assert places == sorted(places)


async def test_requests_may_come_in_pieces_and_with_an_offer_to_upgrade() -> None:
    async with serving() as (server, _):
        host, port = server.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        request = post("/v1/completions", {"prompt": "a", "max_tokens": 1}, "upgrade: h2c")
        for i in range(len(request)):
            writer.write(request[i : i + 1])
            await writer.drain()
        got = await reader.readuntil(b"}}}")
        writer.write(b"GET /v1/mod")
        await writer.drain()
        writer.write(b"els HTTP/1.1\r\nhost: x\r\n\r\n")
        got += await reader.readuntil(b"}]}")
        writer.close()
    assert digest("a").encode() in got
    assert b'"id":"mock"' in got


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n", b"404"),
        (b"GET /v1/completions HTTP/1.1\r\nhost: x\r\n\r\n", b"405"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /v1/realtime HTTP/1.1\r\nhost: x\r\n\r\n", b"426"),
        (post("/v1/completions", {"prompt": "\ud800 x"}), b"400"),
        (post("/v1/completions", DEEP), b"400"),
        (b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n{no", b"400"),
    ],
)
async def test_what_is_no_request_is_refused(sent: bytes, status: bytes) -> None:
    async with serving() as (server, _):
        got = await raw(server.url, sent, until=b"\r\n\r\n")
    assert got.split(b" ")[1] == status


async def test_a_slow_reader_gets_every_byte() -> None:
    async with serving(Latencies(ttft_s=0.0, tpot_s=0.0), max_model_len=200_000) as (server, _):
        host, port = server.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
        body = {"prompt": "a", "max_tokens": 40_000, "stream": True}
        writer.write(post("/v1/completions", body))
        await asyncio.sleep(0.2)  # the buffers between both sides are full by then
        got = b""
        while not got.endswith(b"0\r\n\r\n"):
            got += await reader.read(65_536)
        writer.close()
    assert got.count(b'"text"') == 40_000


async def test_a_long_prompt_in_expectation_of_a_word() -> None:
    async with serving(Latencies(ttft_s=0.0), max_model_len=200_000) as (server, _):
        body = {"prompt": "word " * 100_000, "max_tokens": 1}
        got = await raw(
            server.url, post("/v1/completions", body, "expect: 100-continue"), until=b"}}}"
        )
    assert got.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert b'"prompt_tokens":100001,' in got


async def test_no_bytes_break_the_server() -> None:
    draw = random.Random(11)
    problems: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
    good = [
        post("/v1/completions", {"prompt": "a b", "max_tokens": 2, "stream": True}),
        post("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
        post("/tokenize", {"prompt": "a"}) + post("/detokenize", {"tokens": [0]}),
        post("/v1/completions", {"prompt": [0, 2**60, 10**30], "max_tokens": 10**30}),
        post("/v1/completions", DEEP),
        b"GET /v1/realtime?x HTTP/1.1\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
    ]
    async with serving(Latencies(ttft_s=0.0, tpot_s=0.0)) as (server, client):
        host, port = server.url.removeprefix("http://").split(":")
        for i in range(400):
            sent = bytearray(good[i % len(good)])
            for _ in range(draw.randrange(4)):
                sent[draw.randrange(min(len(sent), 300))] = draw.randrange(256)
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(bytes(sent))
            await client.get("/health")  # what was sent before this was read before it
            writer.close()
        async with asyncio.timeout(5):
            while server.backend.scheduler.running or len(server._connections) > 1:
                await asyncio.sleep(0.001)
        assert server.backend.scheduler.cache.used_blocks == 0
        async with client.post("/v1/completions", json={"prompt": "a", "max_tokens": 1}) as got:
            assert got.status == 200
    assert problems == []
