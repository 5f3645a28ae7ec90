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
from argparse import Namespace
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, Final

import vllm
from tokenizers.decoders import DecodeStream
from vllm import SamplingParams
from vllm.engine.protocol import StreamingInput
from vllm.inputs.engine import tokens_input
from vllm.renderers.chat_utils import load_chat_template
from vllm.sampling_params import RequestOutputKind

from s2l.serving_adapter.realtime.engine import (
    Chunk,
    EngineAborted,
    EngineInfo,
    Message,
    Step,
    TextDecoder,
)

OWN: Final = "s2l-"
"""What the ids of our requests begin with, which tells them from those of the server's own API."""

_GIVEN_UP: Final = ("abort", "error")
"""Of vLLM's finish reasons, those of requests that it ended itself, as when it is paused."""

LOOK_S: Final = 0.02
"""The server's other requests are looked through no more often than this."""


def engine_of(client: Any, state: Any, args: Namespace) -> "VllmEngine":
    """The engine of a vLLM server, given its state and its command line."""
    return VllmEngine(
        client,
        served_names=[model.name for model in state.openai_serving_models.base_model_paths],
        chat_template=load_chat_template(args.chat_template),
        template_arguments=args.default_chat_template_kwargs,
    )


class VllmEngine:
    """A running vLLM engine behind the Engine protocol.

    The first of ``served_names`` is what the model is called. ``chat_template`` takes the place of
    the tokenizer's; ``template_arguments`` are handed to either.
    """

    def __init__(
        self,
        client: Any,
        *,
        served_names: Sequence[str],
        chat_template: str | None = None,
        template_arguments: dict[str, Any] | None = None,
    ) -> None:
        self._client = client
        self._tokenizer = client.get_tokenizer()
        self._chat_template = chat_template
        self._has_template = bool(chat_template or self._tokenizer.chat_template)
        self._template_arguments = template_arguments or {}
        self.info = _info(client.vllm_config, served_names)
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
        bos = start and not self._has_template  # templates write it themselves

        def encode() -> list[int]:
            return list(self._tokenizer.encode(text, add_special_tokens=bos))

        return await asyncio.to_thread(encode)

    def render(self, messages: Sequence[Message]) -> str:
        """The text of the model's chat template, of the bare messages where it has none."""
        if not self._has_template:
            return "\n".join(message.content for message in messages)
        rendered: str = self._tokenizer.apply_chat_template(
            [{"role": message.role, "content": message.content} for message in messages],
            chat_template=self._chat_template,
            tokenize=False,
            add_generation_prompt=True,
            **self._template_arguments,
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
                if answer.finish_reason in _GIVEN_UP:
                    raise EngineAborted(f"the engine gave the request up: {answer.finish_reason}")
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


def _info(config: Any, served_names: Sequence[str]) -> EngineInfo:
    cache, scheduler, model = config.cache_config, config.scheduler_config, config.model_config
    return EngineInfo(
        engine="vllm",
        version=vllm.__version__,
        model=served_names[0],
        aliases=tuple(served_names[1:]),
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
