"""An engine that fails or gives requests up: told to whom it concerns, once, and got over."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from s2l.serving_adapter.mock.engine import Latencies, MockEngine
from s2l.serving_adapter.realtime.admission import Admission
from s2l.serving_adapter.realtime.engine import Chunk, EngineAborted, Step
from s2l.serving_adapter.realtime.streamed_prompt import StreamedPrompt


class Failing(MockEngine):
    """Fails chunks as long as it has failures left: those that are last, or those that are not."""

    def __init__(self, latencies: Latencies, *failures: Exception, last: bool) -> None:
        super().__init__(latencies)
        self.failures = list(failures)
        self._last = last

    async def failed(self) -> None:
        """Wait until no failures are left."""
        async with asyncio.timeout(5):
            while self.failures:
                await asyncio.sleep(0.001)

    async def run(
        self, request_id: str, chunks: AsyncIterator[Chunk], cache_salt: str
    ) -> AsyncIterator[Step]:
        async def watched() -> AsyncIterator[Chunk]:
            async for chunk in chunks:
                if self.failures and chunk.last == self._last:
                    raise self.failures.pop()
                yield chunk

        async for step in super().run(request_id, watched(), cache_salt):
            yield step


async def test_an_answer_that_the_engine_gives_up_has_failed(
    connected: Any, fast: Latencies
) -> None:
    engine = Failing(fast, EngineAborted("given up: abort"), last=True)
    async with connected(engine) as peer:
        await peer.item("Why?", "a")
        await peer.ask()
        failed = await peer.done()
        assert failed["status"] == "failed"
        assert failed["status_details"]["error"]["message"] == "given up: abort"
        await peer.ask()
        assert (await peer.done())["status"] == "incomplete"  # it had one token
        await peer.until_idle()


async def test_early_prefill_that_the_engine_gives_up_is_done_again(
    connected: Any, fast: Latencies
) -> None:
    engine = Failing(fast, EngineAborted("given up: abort"), last=False)
    async with connected(engine) as peer:
        await peer.send("session.update", session={"s2l": {"report": True}})
        await peer.item("One two three. ", "a")
        await peer.last("conversation.item.done")
        await engine.failed()
        await peer.item("Four five six.", "b")
        assert (await peer.last("s2l.prefilled"))["item_ids"] == ["a", "b"]
        await peer.ask()
        assert (await peer.done())["usage"]["input_tokens"] == 10
        await peer.until_idle()


async def test_early_prefill_that_fails_is_logged_once_if_nobody_asks(
    connected: Any, fast: Latencies, caplog: pytest.LogCaptureFixture
) -> None:
    gc.collect()  # what tests before have left is not to be found by this one
    caplog.clear()
    engine = Failing(fast, RuntimeError("on fire"), last=False)
    async with connected(engine) as peer:
        await peer.item("One two three.", "a")
        await peer.last("conversation.item.done")
        await engine.failed()
        await peer.socket.close()
        await peer.until_idle()
    gc.collect()
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.message for record in errors] == ["early prefill failed"]


async def test_early_prefill_that_fails_fails_the_answer_and_not_the_next_one(
    connected: Any, fast: Latencies
) -> None:
    engine = Failing(fast, RuntimeError("on fire"), last=False)
    async with connected(engine) as peer:
        await peer.item("One two three.", "a")
        await peer.last("conversation.item.done")
        await engine.failed()
        await peer.ask()
        assert "on fire" in (await peer.done())["status_details"]["error"]["message"]
        await peer.ask()
        assert (await peer.done())["status"] == "incomplete"


async def test_an_answer_that_began_is_not_begun_again() -> None:
    """The watchdog may ask for the room of a prompt in the moment of its first token."""
    engine = MockEngine(Latencies(prefill_tokens_per_s=1e9, overhead_s=0.001, tpot_s=0.001))
    engine.vocabulary.encode(" ".join(f"w{i}" for i in range(100)))
    admission = Admission(1000, block_size=16, max_sessions=4)
    prompt = StreamedPrompt(engine, admission, request_id="r")
    prompt.replace(range(50))
    steps = prompt.answer(20, 0.0)
    tokens = [(await anext(steps)).token_ids]
    [claim] = admission._claims.everyone
    claim.evicted = True
    claim.wake()
    tokens += [step.token_ids async for step in steps]
    assert len(tokens) == len(set(tokens)) == 20
    assert prompt._runs == 1
    assert admission.free_tokens == 1000 // 16 * 16
    engine.close()
