"""vLLM as an engine: what it is told of the server, and how its outputs are read."""

from argparse import Namespace
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from s2l.serving_adapter.realtime.engine import Chunk, EngineAborted, Message

pytestmark = pytest.mark.engine

CHAT = [Message("system", "Be brief."), Message("user", "Why?")]
TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}{{ mood }}:"


class Client:
    """As much of vLLM's client as an engine needs."""

    def __init__(self, *finish_reasons: str | None) -> None:
        from transformers import AutoTokenizer

        from s2l.serving_adapter.embedded.model import prepare

        self._tokenizer = AutoTokenizer.from_pretrained(prepare().source)
        self._finish_reasons = finish_reasons
        self.vllm_config = _config()

    def get_tokenizer(self) -> Any:
        return self._tokenizer

    async def generate(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        for number, reason in enumerate(self._finish_reasons):
            answer = SimpleNamespace(token_ids=[number], finish_reason=reason)
            yield SimpleNamespace(outputs=[answer], num_cached_tokens=None)


def _config() -> Any:
    cache = SimpleNamespace(num_gpu_blocks=11, block_size=16, enable_prefix_caching=True)
    scheduler = SimpleNamespace(
        max_num_seqs=4, policy="fcfs", max_num_batched_tokens=64, enable_chunked_prefill=True
    )
    return SimpleNamespace(
        cache_config=cache,
        scheduler_config=scheduler,
        model_config=SimpleNamespace(max_model_len=100, dtype="torch.float32"),
        parallel_config=SimpleNamespace(_api_process_count=1),
    )


def _engine(client: Client, **arguments: Any) -> Any:
    from s2l.serving_adapter.vllm_plugin.engine import engine_of

    names = [SimpleNamespace(name=name) for name in ("first", "second")]
    state = SimpleNamespace(openai_serving_models=SimpleNamespace(base_model_paths=names))
    chosen = {"chat_template": None, "default_chat_template_kwargs": None, **arguments}
    return engine_of(client, state, Namespace(**chosen))


def test_the_model_has_all_the_names_that_it_is_served_under() -> None:
    info = _engine(Client()).info
    assert (info.model, info.aliases, info.kv_capacity) == ("first", ("second",), 160)
    assert [info.serves(name) for name in ("first", "second", "third")] == [True, True, False]


def test_the_servers_chat_template_takes_the_place_of_the_models() -> None:
    own = _engine(Client()).render(CHAT)
    assert own.startswith("<|im_start|>system\nBe brief.")
    given = _engine(
        Client(), chat_template=TEMPLATE, default_chat_template_kwargs={"mood": "gladly"}
    )
    assert given.render(CHAT) == "[system]Be brief.[user]Why?gladly:"


@pytest.mark.parametrize("reason", ["abort", "error"])
async def test_requests_that_vllm_ends_itself_are_given_up(reason: str) -> None:
    async def chunks() -> AsyncIterator[Chunk]:
        yield Chunk((1, 2), 4, 0.0, last=True)

    steps = _engine(Client(None, reason)).run("r", chunks(), "")
    assert (await anext(steps)).token_ids == (0,)
    with pytest.raises(EngineAborted, match=f"the engine gave the request up: {reason}"):
        await anext(steps)
