"""Clients that send anything: valid events, mutated ones and noise, and that vanish at any time.

Whatever comes, the server answers every event by exactly one event or error, lets no exception out,
and keeps nothing of a session that is over.
"""

import asyncio
import gc
import json
import logging
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import aiohttp
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.realtime.admission import Admission
from s2l.serving_adapter.realtime.connection import Connection
from s2l.serving_adapter.realtime.limits import Limits

QUIET: Final = 0.006
"""A pause in seconds, longer than changes are waited for before they are prefilled."""

_KV_USAGE: Final = "vllm:kv_cache_usage_perc"
_IDS: Final = "abcdef"
_ODD_IDS: Final = ("root", "", "x" * 65, "\u00e9\u4e2d\U0001f600", "nobody")
_TEXTS: Final = ("word", "some more words ", "a ", "one two three four ", "<|im_end|>", "\x02\x03")
_ODD_TEXTS: Final = ("", " ", "\x00", "word " * 40, "\u00e9" * 50, "word " * 400, "{{ 1 }}")
_ODD_VALUES: Final = (None, True, -1, 0, 2**63, 10**400, 1.5, 1e300, "inf", [], {}, "x" * 5000)
_DEEP: Final = ("[" * 3000, '{"type":' * 3000)
_NOISE: Final = ("", "{}", "null", *_DEEP, '"\\ud800"', "\x00", "\ud800", b"", b"{}")


class Wild:
    """Draws what a client might send, good or bad, in scripts of frames and pauses."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw

    def script(self) -> tuple[list[Any], bool]:
        """Frames and pauses in seconds, and whether the client vanishes after them at once."""
        steps = [self._step() for _ in range(self._draw.randint(10, 60))]
        return steps, self._draw.random() < 0.3

    def _step(self) -> Any:
        kinds = [self._valid, self._mutated, self._noise, self._pause]
        return self._draw.choices(kinds, [60, 25, 5, 10])[0]()

    def _pause(self) -> float:
        return self._draw.choice((0.0, 0.0, 0.0, QUIET))

    def _noise(self) -> str | bytes:
        size = self._draw.randint(0, 30)
        text = "".join(chr(self._draw.choice((34, 58, 92, 123, 125, 0x1F600))) for _ in range(size))
        return self._draw.choice((*_NOISE, text, self._draw.randbytes(size)))

    def _valid(self) -> str:
        return json.dumps(self._event(), ensure_ascii=self._draw.random() < 0.5)

    def _mutated(self) -> str:
        """A valid event with one thing wrong somewhere."""
        event = self._event()
        holder, key = self._draw.choice(list(_places(event)))
        how = self._draw.choice(("replace", "remove", "add", "cut", "twice"))
        if how == "replace":
            holder[key] = self._json()
        elif how == "remove":
            del holder[key]
        elif how == "add" and isinstance(holder, dict):
            holder[self._text()[:9]] = self._json()
        text = json.dumps(event)
        if how == "cut":
            return text[: self._draw.randrange(len(text))]
        return text * 2 if how == "twice" else text

    def _json(self, depth: int = 3) -> Any:
        kind = self._draw.randrange(4 if depth else 2)
        if kind == 0:
            return self._text()
        if kind == 1:
            return self._draw.choice(_ODD_VALUES)
        values = [self._json(depth - 1) for _ in range(self._draw.randrange(3))]
        return values if kind == 2 else {self._text()[:9]: value for value in values}

    def _event(self) -> dict[str, Any]:
        makers = {
            self._create: 30,
            self._respond: 20,
            self._delete: 12,
            self._update: 10,
            self._cancel: 6,
            self._rare: 6,
        }
        event = self._draw.choices(list(makers), list(makers.values()))[0]()
        if self._draw.random() < 0.2:
            event["event_id"] = self._draw.choice(("mine", "mine", "", "e" * 600))
        return event

    def _create(self) -> dict[str, Any]:
        event = {"type": "conversation.item.create", "item": self._item()}
        if self._draw.random() < 0.3:
            event["previous_item_id"] = self._id()
        return event

    def _respond(self) -> dict[str, Any]:
        response: dict[str, Any] = {"max_output_tokens": self._draw.randint(1, 6)}
        if self._draw.random() < 0.4:
            response["conversation"] = self._draw.choice(("auto", "none", "none"))
        if self._draw.random() < 0.2:
            response["instructions"] = self._text()
        if self._draw.random() < 0.2:
            response["input"] = [self._input() for _ in range(self._draw.randrange(3))]
        if self._draw.random() < 0.1:
            response |= {"metadata": {self._text()[:9]: self._text()}, "temperature": 0.5}
        return {"type": "response.create", "response": response}

    def _delete(self) -> dict[str, Any]:
        return {"type": "conversation.item.delete", "item_id": self._id()}

    def _update(self) -> dict[str, Any]:
        session: dict[str, Any] = {"type": "realtime", "max_output_tokens": 4}
        if self._draw.random() < 0.5:
            session["instructions"] = self._text()
        if self._draw.random() < 0.5:
            salt = self._draw.choice(("", "one"))
            session["s2l"] = {"report": self._draw.random() < 0.7, "cache_salt": salt}
        if self._draw.random() < 0.2:
            session |= {"tools": [], "output_modalities": ["text"], "temperature": 1}
        return {"type": "session.update", "session": session}

    def _cancel(self) -> dict[str, Any]:
        event = {"type": "response.cancel"}
        return event | ({"response_id": self._id()} if self._draw.random() < 0.3 else {})

    def _rare(self) -> dict[str, Any]:
        place = {"item_id": self._id(), "content_index": 0, "audio_end_ms": 0}
        return self._draw.choice(
            (
                {"type": "conversation.item.retrieve", "item_id": self._id()},
                {"type": "conversation.item.truncate", **place},
                {"type": "input_audio_buffer.append", "audio": self._text()},
                {"type": "input_audio_buffer.commit"},
                {"type": "output_audio_buffer.clear"},
            )
        )

    def _input(self) -> dict[str, Any]:
        if self._draw.random() < 0.5:
            return {"type": "item_reference", "id": self._id()}
        return self._item()

    def _item(self) -> dict[str, Any]:
        role = self._draw.choice(("user", "user", "user", "assistant", "system"))
        kind = "output_text" if role == "assistant" else "input_text"
        parts = [{"type": kind, "text": self._text()} for _ in range(self._draw.choice((1, 1, 2)))]
        item = {"type": "message", "role": role, "content": parts}
        return item | ({"id": self._id()} if self._draw.random() < 0.7 else {})

    def _id(self) -> str:
        return self._draw.choice(_IDS if self._draw.random() < 0.9 else _ODD_IDS)

    def _text(self) -> str:
        return self._draw.choice(_TEXTS if self._draw.random() < 0.9 else _ODD_TEXTS)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every holder and key in nested JSON."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


class Answers:
    """Counts what a server says to one client, against what the client sent."""

    def __init__(self) -> None:
        self.frames = 0
        self.kinds: Counter[str] = Counter()
        self._answers: set[str] = set()
        self.changed = asyncio.Event()

    def take(self, frame: str) -> None:
        event = json.loads(frame)
        kind = event["type"]
        if kind == "error":
            assert event["error"]["type"] != "server_error", event
        elif kind == "response.output_item.added":
            self._answers.add(event["item"]["id"])
        elif kind == "conversation.item.done" and event["item"]["id"] in self._answers:
            kind = "answer added"
        elif kind == "response.done":
            self.kinds[event["response"]["status"]] += 1
            assert event["response"]["status"] != "failed", event
        self.kinds[kind] += 1
        self.changed.set()

    @property
    def complete(self) -> bool:
        """Whether every event was answered; one that cancels, by the end of what it cancels."""
        said = (
            "error",
            "session.updated",
            "conversation.item.done",
            "conversation.item.deleted",
            "conversation.item.retrieved",
            "response.created",
            "cancelled",
        )
        answers = sum(self.kinds[kind] for kind in said)
        assert answers <= self.frames
        return answers == self.frames

    @property
    def responses_are_over(self) -> bool:
        return self.kinds["response.created"] == self.kinds["response.done"]

    async def until_over(self) -> None:
        async with asyncio.timeout(60):
            while not (self.complete and self.responses_are_over):
                self.changed.clear()
                await self.changed.wait()


class ScriptedSocket:
    """Plays a client's script, and listens."""

    def __init__(self, script: list[Any], vanishes: bool) -> None:
        self._script = iter(script)
        self._vanishes = vanishes
        self.answers = Answers()

    async def receive(self) -> str | bytes | None:
        for step in self._script:
            if isinstance(step, float):
                await asyncio.sleep(step)
            else:
                self.answers.frames += 1
                return step  # type: ignore[no-any-return]
        if not self._vanishes:
            await self.answers.until_over()
        return None

    async def send(self, frame: str) -> None:
        self.answers.take(frame)


def _gauge() -> float:
    states = ("open", "answering", "idle")
    values = (REGISTRY.get_sample_value("s2l_sessions", {"state": state}) for state in states)
    return sum(value or 0.0 for value in values)


class Errors(logging.Handler):
    """Keeps what the server logs as an error, and what asyncio says nobody looked at."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(self.format(record))


async def _play(scripts: list[tuple[list[Any], bool]]) -> int:
    """Serve the clients at once on one small cache; how many frames they sent."""
    engine = MockEngine(Latencies(1e9, 0.0, 0.0), max_model_len=256, kv_capacity=640)
    admission = Admission(640, block_size=16, max_sessions=4)
    limits = Limits(max_items=12, max_message_bytes=4000, max_responses=3)
    before = _gauge()
    sockets = [ScriptedSocket(*script) for script in scripts]
    connections = [Connection(socket, engine, admission, limits) for socket in sockets]
    endings = await asyncio.gather(*(connection.serve() for connection in connections))
    assert [ending.limit for ending in endings] == [None] * len(scripts)
    assert (engine.open_runs, admission.free_tokens, admission.waiting) == (0, 640, 0)
    assert _gauge() == before
    await _until_alone()
    engine.close()
    return sum(socket.answers.frames for socket in sockets)


async def _until_alone() -> None:
    async with asyncio.timeout(5):
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.001)


def _fuzz(examples: int) -> int:
    """Play that many examples; how many frames were sent."""
    frames = 0
    errors = Errors()
    logging.getLogger().addHandler(errors)
    with asyncio.Runner() as runner:

        @settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],  # a script of random steps does not shrink
        )
        @given(st.randoms(use_true_random=True), st.integers(1, 12))
        def play(draw: random.Random, clients: int) -> None:
            nonlocal frames
            frames += runner.run(_play([Wild(draw).script() for _ in range(clients)]))
            assert errors.records == []

        try:
            play()
            gc.collect()
            assert errors.records == []
        finally:
            logging.getLogger().removeHandler(errors)
    return frames


def test_the_server_survives_some_thousand_messages() -> None:
    assert _fuzz(15) > 2_000


@pytest.mark.slow
def test_the_server_survives_a_hundred_thousand_messages() -> None:
    assert _fuzz(700) > 100_000


@pytest.mark.engine
async def test_the_real_engine_survives_a_thousand_messages(vllm: Any) -> None:
    draw, frames = random.Random(0), 0
    headers = {"Authorization": f"Bearer {vllm.api_key}"}
    async with aiohttp.ClientSession(vllm.url, headers=headers) as http:
        while frames < 1000:
            answers = await asyncio.gather(*(_talk(http, Wild(draw).script()) for _ in range(4)))
            frames += sum(answer.frames for answer in answers)
        async with asyncio.timeout(60):
            while await _sum_of(http, "s2l_sessions{") or await _sum_of(http, _KV_USAGE):
                # The engine's gauge moves only when it steps: give it something to do.
                body = {"model": vllm.model, "prompt": "The capital of France is", "max_tokens": 4}
                async with http.post("/v1/completions", json=body | {"temperature": 0}) as said:
                    assert "Paris" in (await said.json())["choices"][0]["text"]


async def _talk(http: aiohttp.ClientSession, script: tuple[list[Any], bool]) -> Answers:
    """Play a script over the network; a client that does not vanish waits for all answers."""
    steps, vanishes = script
    answers = Answers()
    async with http.ws_connect("/v1/realtime") as socket:
        listening = asyncio.create_task(_listen(socket, answers))
        for step in steps:
            if isinstance(step, float):
                await asyncio.sleep(step)
                continue
            answers.frames += 1
            if isinstance(step, bytes):
                await socket.send_bytes(step)
            else:
                await socket.send_str(step.encode(errors="replace").decode())
        if not vanishes:
            await answers.until_over()
        listening.cancel()
        await asyncio.wait([listening])
        if vanishes:
            socket._response.connection.transport.abort()
    return answers


async def _listen(socket: aiohttp.ClientWebSocketResponse, answers: Answers) -> None:
    async for message in socket:
        if message.data:
            answers.take(message.data)


async def _sum_of(http: aiohttp.ClientSession, metric: str) -> float:
    async with http.get("/metrics") as response:
        lines = (await response.text()).splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(metric))
