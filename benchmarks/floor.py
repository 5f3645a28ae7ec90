"""Streaming's floor: what is left to wait for when all context was prefilled while it arrived.

On an idle engine, query by query in turn: a context streamed in pieces, and one of the same length
that has been resident in one piece for a while; then the question alone is sent to both.
``floor_ratio`` is the time from the question to the first token of the one over the other, at the
median and at the 95th percentile of each. Beside it, ``over_stock``: the same over what the
server's ordinary completions endpoint needs with the context in its prefix cache. Prints its
figures as one JSON object on the last line; run it with the environment's Python:
``benchmarks/floor.py [--quick]``.
"""

import argparse
import asyncio
import json
import random
import time
from typing import Any, Final

import aiohttp
import numpy as np

from s2l.serving_adapter.embedded.model import prepare
from s2l.serving_adapter.embedded.server import EmbeddedServer

INSTRUCTIONS: Final = "Answer the question from the context."
QUESTION: Final = "Question: which of these words is the name of a bird, and which of a mammal?"
PIECES: Final = 6
GAP_S: Final = 0.3
WORDS: Final = "river stone heron otter beaver winter summer water bridge forest mountain valley"


def context(draw: random.Random) -> list[str]:
    """Six pieces of about 95 tokens, different each time."""
    words = WORDS.split()
    return [" ".join(draw.choice(words) for _ in range(90)) + ".\n" for _ in range(PIECES)]


async def realtime(http: aiohttp.ClientSession, pieces: list[str], salt: str) -> float:
    """Seconds from the question to the first token, once all pieces are held by the engine."""
    async with http.ws_connect("/v1/realtime") as socket:
        session = {
            "type": "realtime",
            "instructions": INSTRUCTIONS,
            "max_output_tokens": 2,
            "s2l": {"cache_salt": salt, "report": True, "temperature": 0.0},
        }
        await socket.send_json({"type": "session.update", "session": session})
        for n, piece in enumerate(pieces):
            await socket.send_json(_item(piece, f"piece_{n}"))
            await _until(socket, "s2l.prefilled")
            await asyncio.sleep(GAP_S)
        sent_s = time.perf_counter()
        await socket.send_json(_item(QUESTION, "question"))
        await socket.send_json({"type": "response.create"})
        await _until(socket, "response.output_text.delta")
        ttft_s = time.perf_counter() - sent_s
        await _until(socket, "response.done")
    return ttft_s


def _item(text: str, item_id: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    item = {"id": item_id, "type": "message", "role": "user", "content": content}
    return {"type": "conversation.item.create", "item": item}


async def _until(socket: aiohttp.ClientWebSocketResponse, kind: str) -> None:
    while (event := json.loads(await socket.receive_str()))["type"] != kind:
        if event["type"] == "error":
            raise RuntimeError(event["error"]["message"])


async def stock(http: aiohttp.ClientSession, model: str, text: str, salt: str) -> float:
    """The same of an ordinary request whose context is in the prefix cache."""
    before = f"<|im_start|>system\n{INSTRUCTIONS}<|im_end|>\n<|im_start|>user\n{text}"
    after = f"{QUESTION}<|im_end|>\n<|im_start|>assistant\n"
    body = {"model": model, "max_tokens": 2, "temperature": 0, "cache_salt": salt, "stream": True}
    async with http.post("/v1/completions", json={**body, "prompt": before}) as response:
        await response.read()
    await asyncio.sleep(GAP_S)
    sent_s = time.perf_counter()
    async with http.post("/v1/completions", json={**body, "prompt": before + after}) as response:
        async for line in response.content:
            if line.startswith(b"data:") and json.loads(line[5:])["choices"][0]["text"]:
                ttft_s = time.perf_counter() - sent_s
                await response.read()
                return ttft_s
    raise RuntimeError("no token came")


async def measure(url: str, model: str, queries: int) -> dict[str, list[float]]:
    """Times of each kind, one query after the other, in turn and in changing order."""
    draw = random.Random(1)
    times_s: dict[str, list[float]] = {"streamed": [], "resident": [], "stock": []}
    async with aiohttp.ClientSession(url) as http:
        for n in range(-2, queries):  # the first two only warm up
            kinds = draw.sample(sorted(times_s), len(times_s))
            for kind in kinds:
                pieces, salt = context(draw), f"{kind}-{n}-{time.time_ns()}"
                if kind == "stock":
                    ttft_s = await stock(http, model, "".join(pieces), salt)
                else:
                    whole = pieces if kind == "streamed" else ["".join(pieces)]
                    ttft_s = await realtime(http, whole, salt)
                if n >= 0:
                    times_s[kind].append(ttft_s)
    return times_s


async def run(quick: bool) -> dict[str, Any]:
    """Start the engine and measure."""
    model = prepare()
    async with EmbeddedServer(model) as server:
        times_s = await measure(server.url, model.served_name, 12 if quick else 50)
    p50, p95 = ({k: float(np.percentile(v, p)) for k, v in times_s.items()} for p in (50, 95))
    return {
        "quick": quick,
        "floor_ratio_p50": round(p50["streamed"] / p50["resident"], 3),
        "floor_ratio_p95": round(p95["streamed"] / p95["resident"], 3),
        "over_stock_p50": round(p50["streamed"] / p50["stock"], 3),
        "ttft_ms_p50": {kind: round(1000 * one, 1) for kind, one in p50.items()},
        "ttft_ms_p95": {kind: round(1000 * one, 1) for kind, one in p95.items()},
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="12 queries, under two minutes")
    print(json.dumps(asyncio.run(run(parser.parse_args().quick))))


if __name__ == "__main__":
    main()
