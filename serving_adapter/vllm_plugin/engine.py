"""vLLM as an engine of Realtime sessions; the one place that imports it.

What has to be minded with vLLM 0.32: a chunk of a ``StreamingInput`` session samples at least one
token, and the scheduler drops the last one sampled when the next chunk comes; the engine extends
the token list that it is given in place, so it is given lists of its own; stop strings, ``n > 1``
and final-only output are refused in sessions. The detokeniser of a session would run on over the
dropped tokens, so sessions run without it and answers are decoded here. A session keeps the
priority that it began with.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, Final

import vllm
from tokenizers.decoders import DecodeStream
from vllm import SamplingParams
from vllm.engine.protocol import StreamingInput
from vllm.inputs.engine import tokens_input
from vllm.sampling_params import RequestOutputKind

from s2l.serving_adapter.realtime.engine import Chunk, EngineInfo, Message, Step, TextDecoder

OWN: Final = "s2l-"
"""What the ids of our requests begin with, which tells them from those of the server's own API."""

LOOK_S: Final = 0.02
"""The server's other requests are looked through no more often than this."""


class VllmEngine:
    """A running vLLM engine behind the Engine protocol."""

    def __init__(self, client: Any, *, served_name: str) -> None:
        self._client = client
        self._tokenizer = client.get_tokenizer()
        self.info = _info(client.vllm_config, served_name)
        self._others: dict[str, float] = {}
        self._looked_s = 0.0

    def others_wait_s(self) -> float | None:
        """How long the first of the requests that came by other doors waits for its first token;
        None when none does."""
        now_s = time.monotonic()
        if now_s - self._looked_s >= LOOK_S:
            self._looked_s = now_s
            states = self._client.output_processor.request_states
            waiting = (
                request_id
                for request_id, state in states.items()
                if state.is_prefilling and not state.external_req_id.startswith(OWN)
            )
            self._others = {one: self._others.get(one, now_s) for one in waiting}
        return now_s - min(self._others.values()) if self._others else None

    async def tokenize(self, text: str, *, start: bool = False) -> list[int]:
        """Token ids of the text; a text that starts a prompt gets what the model starts with."""
        bos = start and self._tokenizer.chat_template is None  # templates write it themselves

        def encode() -> list[int]:
            return list(self._tokenizer.encode(text, add_special_tokens=bos))

        return await asyncio.to_thread(encode)

    def render(self, messages: Sequence[Message]) -> str:
        """The text of the model's chat template, of the bare messages where it has none."""
        if self._tokenizer.chat_template is None:
            return "\n".join(message.content for message in messages)
        rendered: str = self._tokenizer.apply_chat_template(
            [{"role": message.role, "content": message.content} for message in messages],
            tokenize=False,
            add_generation_prompt=True,
        )
        return rendered

    def decoder(self) -> TextDecoder:
        """A decoder for one answer."""
        return _Decoder(self._tokenizer)

    async def run(
        self, request_id: str, chunks: AsyncIterator[Chunk], cache_salt: str
    ) -> AsyncIterator[Step]:
        """A ``StreamingInput`` session; an ordinary request where the first chunk is the last."""
        first = await anext(chunks)
        prompt = _prompt(first, cache_salt) if first.last else _inputs(first, chunks, cache_salt)
        by_priority = self._client.vllm_config.scheduler_config.policy == "priority"
        priority = first.priority if by_priority else 0
        outputs = self._client.generate(
            prompt, _sampling(first), OWN + request_id, priority=priority
        )
        async with aclosing(outputs):
            async for output in outputs:
                answer = output.outputs[0]
                cached = output.num_cached_tokens or 0
                yield Step(tuple(answer.token_ids), answer.finish_reason, cached)


async def _inputs(
    first: Chunk, others: AsyncIterator[Chunk], cache_salt: str
) -> AsyncGenerator[StreamingInput, None]:
    yield StreamingInput(prompt=_prompt(first, cache_salt), sampling_params=_sampling(first))
    async for chunk in others:
        yield StreamingInput(prompt=_prompt(chunk, cache_salt), sampling_params=_sampling(chunk))


def _prompt(chunk: Chunk, cache_salt: str) -> Any:
    return tokens_input(list(chunk.token_ids), cache_salt=cache_salt or None)


def _sampling(chunk: Chunk) -> SamplingParams:
    return SamplingParams(
        max_tokens=chunk.max_tokens,
        temperature=chunk.temperature,
        detokenize=False,
        output_kind=RequestOutputKind.DELTA,
    )


def _info(config: Any, served_name: str) -> EngineInfo:
    cache, scheduler, model = config.cache_config, config.scheduler_config, config.model_config
    return EngineInfo(
        engine="vllm",
        version=vllm.__version__,
        model=served_name,
        max_model_len=model.max_model_len,
        # vLLM keeps one block empty; server processes that share an engine share its cache.
        kv_capacity=(cache.num_gpu_blocks - 1)
        // config.parallel_config._api_process_count
        * cache.block_size,
        block_size=cache.block_size,
        max_sessions=scheduler.max_num_seqs,
        settings={
            "dtype": str(model.dtype).removeprefix("torch."),
            "scheduling_policy": str(scheduler.policy),
            "max_num_batched_tokens": scheduler.max_num_batched_tokens,
            "max_num_seqs": scheduler.max_num_seqs,
            "enable_prefix_caching": bool(cache.enable_prefix_caching),
            "enable_chunked_prefill": bool(scheduler.enable_chunked_prefill),
        },
    )


class _Decoder:
    def __init__(self, tokenizer: Any) -> None:
        self._backend = tokenizer._tokenizer
        self._stream = DecodeStream(skip_special_tokens=True)

    def push(self, token_ids: Sequence[int]) -> str:
        pieces = (self._stream.step(self._backend, token_id) for token_id in token_ids)
        return "".join(piece for piece in pieces if piece)
