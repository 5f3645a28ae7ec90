"""Many contexts at once over a KV cache that holds a third of them: does everyone get an answer?

Starts the embedded engine with a small cache and replays the same queries, context streamed as it
arrives, and all of it sent when the last piece has arrived: stream, wait, wait, stream, so that a
machine that gets slower or faster meanwhile favours neither (``--quick``: one pass of each). Half
of the contexts grow by appending, half are replaced in part; one client in ten vanishes in
mid-context without closing.
Prints the figures as one JSON object on the last line; ``ttft_s`` counts from the moment at which a
context was complete. Run it with the environment's Python: ``benchmarks/pressure.py [--quick]``.
"""

import argparse
import asyncio
import json
import random
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from socket import SHUT_RDWR
from typing import Any, Final

import aiohttp
import numpy as np

from s2l.serving_adapter.embedded.model import prepare
from s2l.serving_adapter.embedded.server import EmbeddedServer, EngineOptions
from s2l.serving_adapter.realtime.watchdog import WATCHDOG_S

BLOCK_TOKENS: Final = 32
WORDS: Final = """
    river stone heron otter beaver winter summer water bridge forest mountain valley paper letter
    window garden market number engine signal harbour island winding copper silver
"""
GAP_S: Final = 2.0
STUCK_S: Final = 150.0
"""A client that has no answer so long after its context was complete is taken for stuck."""


@dataclass(frozen=True, slots=True)
class Update:
    """At ``due_s``: these documents are added, or are the whole context from now on."""

    due_s: float
    documents: tuple[str, ...]
    replaces: bool


@dataclass(frozen=True, slots=True)
class Client:
    """One query: its updates, and after how many of them its client vanishes (None: it stays)."""

    name: str
    updates: tuple[Update, ...]
    vanishes_after: int | None


@dataclass(slots=True)
class Outcome:
    """What came of one query; ``ttft_s`` from the moment its context was complete."""

    name: str
    ttft_s: float | None = None
    error: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)


def clients(number: int, documents: int, seed: int) -> list[Client]:
    """Queries that start within three seconds, with gaps of one to three seconds."""
    draw = random.Random(seed)
    vanishing = set(draw.sample(range(number), number // 10))
    made = []
    for n in range(number):
        start_s = draw.uniform(0.0, 3.0)
        times_s = start_s + np.cumsum([GAP_S * draw.uniform(0.5, 1.5) for _ in range(documents)])
        make = _replacing if n % 2 else _appending
        updates = tuple(make(draw, [float(one) for one in times_s]))
        gone = draw.randint(1, documents - 1) if n in vanishing else None
        made.append(Client(f"q{n}", updates, gone))
    return made


def _document(draw: random.Random) -> str:
    words = WORDS.split()
    return " ".join(draw.choice(words) for _ in range(90)) + ".\n"


def _appending(draw: random.Random, times_s: Sequence[float]) -> list[Update]:
    return [Update(due_s, (_document(draw),), replaces=False) for due_s in times_s]


def _replacing(draw: random.Random, times_s: Sequence[float]) -> list[Update]:
    """A pool of best documents: most of it stays, a better one pushes another out."""
    pool = [_document(draw) for _ in times_s]
    updates = [Update(times_s[0], tuple(pool), replaces=True)]
    for due_s in times_s[1:]:
        pool[draw.randint(len(pool) // 2, len(pool) - 1)] = _document(draw)
        updates.append(Update(due_s, tuple(pool), replaces=True))
    return updates


class Context:
    """The items of one conversation, and the events that make them follow an update."""

    def __init__(self) -> None:
        self._items: list[tuple[str, str]] = []
        self._made = 0

    def events(self, update: Update) -> list[dict[str, Any]]:
        """Delete what is gone, create what is new."""
        if not update.replaces:
            return [self._create(text, len(self._items)) for text in update.documents]
        gone = [item for item in self._items if item[1] not in update.documents]
        self._items = [item for item in self._items if item[1] in update.documents]
        events: list[dict[str, Any]] = [
            {"type": "conversation.item.delete", "item_id": item_id} for item_id, _ in gone
        ]
        for place, text in enumerate(update.documents):
            if place >= len(self._items) or self._items[place][1] != text:
                events.append(self._create(text, place))
        return events

    def _create(self, text: str, place: int) -> dict[str, Any]:
        self._made += 1
        item_id = f"item_{self._made}"
        after = self._items[place - 1][0] if place else "root"
        self._items.insert(place, (item_id, text))
        return {"previous_item_id": after, **item_created(text, item_id)}


def item_created(text: str, item_id: str) -> dict[str, Any]:
    """The event that creates an item with this text."""
    content = [{"type": "input_text", "text": text}]
    item = {"id": item_id, "type": "message", "role": "user", "content": content}
    return {"type": "conversation.item.create", "item": item}


async def play(url: str, client: Client, start_s: float, *, stream: bool, salt: str) -> Outcome:
    """One client, from its first update to the end of its answer."""
    outcome, loop = Outcome(client.name), asyncio.get_running_loop()
    due_s = start_s + client.updates[-1].due_s
    if not stream:
        client = replace(
            client,
            updates=tuple(replace(u, due_s=client.updates[-1].due_s) for u in _final(client)),
        )
    try:
        async with (
            asyncio.timeout_at(due_s + STUCK_S),
            aiohttp.ClientSession() as http,
            http.ws_connect(f"{url}/v1/realtime", max_msg_size=0) as socket,
        ):
            await _configure(socket, salt)
            await _send_context(socket, client, start_s)
            if client.vanishes_after is not None:
                socket.get_extra_info("socket").shutdown(SHUT_RDWR)
                return outcome
            await socket.send_json(item_created("Which words come first?\n", "question"))
            await socket.send_json({"type": "response.create"})
            await _read_answer(socket, outcome, due_s)
    except TimeoutError:
        outcome.error = "stuck"
    except (aiohttp.ClientError, OSError, ValueError) as error:
        outcome.error = f"{type(error).__name__}: {error}"
    assert outcome.error or loop.time() >= due_s
    return outcome


def _final(client: Client) -> list[Update]:
    """What a client that waits sends: the last whole context, or all that was added."""
    return [client.updates[-1]] if client.updates[-1].replaces else list(client.updates)


async def _configure(socket: aiohttp.ClientWebSocketResponse, salt: str) -> None:
    session = {
        "type": "realtime",
        "instructions": "Answer from the context.",
        "output_modalities": ["text"],
        "max_output_tokens": 8,
        "s2l": {"cache_salt": salt, "report": True},
    }
    await socket.send_json({"type": "session.update", "session": session})


async def _send_context(
    socket: aiohttp.ClientWebSocketResponse, client: Client, start_s: float
) -> None:
    context, loop = Context(), asyncio.get_running_loop()
    for n, update in enumerate(client.updates):
        if client.vanishes_after == n:
            return
        await asyncio.sleep(start_s + update.due_s - loop.time())
        for event in context.events(update):
            await socket.send_json(event)


async def _read_answer(
    socket: aiohttp.ClientWebSocketResponse, outcome: Outcome, due_s: float
) -> None:
    async for message in socket:
        event = json.loads(message.data)
        if event["type"] == "error":
            raise ValueError(event["error"]["message"])
        if event["type"] == "response.output_text.delta" and outcome.ttft_s is None:
            outcome.ttft_s = asyncio.get_running_loop().time() - due_s
        if event["type"] == "response.done":
            response = event["response"]
            if response["status"] not in ("completed", "incomplete"):
                raise ValueError(f"response {response['status']}: {response['status_details']}")
            outcome.usage = response["usage"]
            return
    raise ValueError("the server closed the connection")


async def play_all(url: str, queries: list[Client], *, stream: bool) -> list[Outcome]:
    """One pass; prompts of different passes share no cache."""
    start_s = asyncio.get_running_loop().time() + 0.5
    salt = f"{'stream' if stream else 'wait'}-{time.time_ns()}"
    return list(
        await asyncio.gather(
            *(play(url, one, start_s, stream=stream, salt=f"{salt}-{one.name}") for one in queries)
        )
    )


async def server_metrics(url: str, pattern: str) -> dict[str, float]:
    """Samples of ``/metrics`` whose names match."""
    async with aiohttp.ClientSession() as http, http.get(f"{url}/metrics") as response:
        text = await response.text()
    samples = (line.rsplit(" ", 1) for line in text.splitlines() if re.match(pattern, line))
    return {name: float(value) for name, value in samples}


async def kv_usage(url: str) -> float:
    """Share of the KV cache in use once the engine has stepped again."""
    poke = Client("poke", (Update(0.0, ("Hello.\n",), replaces=False),), None)
    await play_all(url, [poke], stream=False)
    return sum((await server_metrics(url, "vllm:kv_cache_usage_perc")).values())


async def measure(url: str, queries: list[Client], order: Sequence[str]) -> dict[str, Any]:
    """The passes in this order, and what is left of them in the server."""
    base = await kv_usage(url)
    passes: dict[str, list[Outcome]] = {"stream": [], "wait": []}
    for name in order:
        done = await play_all(url, queries, stream=name == "stream")
        print(f"{name}: {_describe(done)}", file=sys.stderr)
        passes[name] += done
    print(await server_metrics(url, "s2l_[a-z_]*_total"), file=sys.stderr)
    usage = await kv_usage(url)
    gone = {one.name for one in queries if one.vanishes_after is not None}
    stayed = {name: [o for o in done if o.name not in gone] for name, done in passes.items()}
    errors = [o.error for done in stayed.values() for o in done if o.error]
    ttft_s = {name: [o.ttft_s for o in done if o.ttft_s] for name, done in stayed.items()}
    bound_s = max(ttft_s["wait"]) + WATCHDOG_S
    return {
        "stuck": errors.count("stuck"),
        "failed": len(errors) - errors.count("stuck"),
        "p99_stream_over_wait": _ratio(ttft_s, 99),
        "p50_stream_over_wait": _ratio(ttft_s, 50),
        "longest_wait_s": round(max(ttft_s["stream"]), 2),
        "bound_s": round(bound_s, 2),
        "beyond_bound": sum(one > bound_s for one in ttft_s["stream"]),
        "kv_returned": usage <= base + 1e-9,
    }


def _ratio(ttft_s: dict[str, list[float]], percentile: int) -> float:
    stream, wait = (np.percentile(ttft_s[name], percentile) for name in ("stream", "wait"))
    return round(float(stream / wait), 3)


def _describe(done: list[Outcome]) -> str:
    times = [o.ttft_s for o in done if o.ttft_s is not None]
    shown = ", ".join(f"p{p} {np.percentile(times, p):.2f} s" for p in (50, 90, 99))
    return f"{len(times)} answered, ttft_s {shown}; {[o.error for o in done if o.error]}"


async def run(quick: bool, extra: tuple[str, ...]) -> dict[str, Any]:
    """Start the engine with a cache for a third of the contexts, and measure."""
    number, documents = 30, 3 if quick else 6
    blocks = number * documents * 100 // 3 // BLOCK_TOKENS
    options = EngineOptions(
        block_size=BLOCK_TOKENS,
        max_model_len=1024,
        extra=("--num-gpu-blocks-override", str(blocks + 1), *extra),
    )
    began_s = time.monotonic()
    async with EmbeddedServer(prepare(), options) as server:
        order = ("stream", "wait") if quick else ("stream", "wait", "wait", "stream")
        figures = await measure(server.url, clients(number, documents, seed=1), order)
    return {"quick": quick, "seconds": round(time.monotonic() - began_s, 1), **figures}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter contexts, under two minutes")
    parser.add_argument("vllm_arguments", nargs="*", help="handed to vLLM, after --")
    options = parser.parse_args()
    figures = asyncio.run(run(options.quick, tuple(options.vllm_arguments)))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
