"""vLLM as an engine of Realtime sessions; the one place that imports it.

What has to be minded with vLLM 0.32: a chunk of a ``StreamingInput`` session samples at least one
token, and the scheduler drops the last one sampled when the next chunk comes; the engine extends
the token list that it is given in place, so it is given lists of its own; stop strings, ``n > 1``
and final-only output are refused in sessions. The detokeniser of a session would run on over the
dropped tokens, so sessions run without it and answers are decoded here.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import vllm
from tokenizers.decoders import DecodeStream
from vllm import SamplingParams
from vllm.engine.protocol import StreamingInput
from vllm.inputs.engine import tokens_input
from vllm.sampling_params import RequestOutputKind

from s2l.serving_adapter.realtime.engine import Chunk, EngineInfo, Step, TextDecoder


class VllmEngine:
    """A running vLLM engine behind the Engine protocol."""

    def __init__(self, client: Any, *, served_name: str) -> None:
        self._client = client
        self._tokenizer = client.get_tokenizer()
        self.info = _info(client.vllm_config, served_name)

    async def tokenize(self, text: str, *, start: bool = False) -> list[int]:
        """Token ids of the text; a text that starts a prompt gets what the model starts with."""
        bos = start and self._tokenizer.chat_template is None  # templates write it themselves

        def encode() -> list[int]:
            return list(self._tokenizer.encode(text, add_special_tokens=bos))

        return await asyncio.to_thread(encode)

    def render(self, instructions: str, user: str) -> str:
        """The chat template's text; templates without a system role get one message."""
        if self._tokenizer.chat_template is None:
            return f"{instructions}\n{user}" if instructions else user
        messages = [{"role": "user", "content": user}]
        if instructions:
            messages.insert(0, {"role": "system", "content": instructions})
        rendered: str = self._tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        return rendered

    def decoder(self) -> TextDecoder:
        """A decoder for one answer."""
        return _Decoder(self._tokenizer)

    async def run(
        self, request_id: str, chunks: AsyncIterator[Chunk], cache_salt: str
    ) -> AsyncIterator[Step]:
        """One ``StreamingInput`` session."""

        async def inputs() -> AsyncIterator[StreamingInput]:
            async for chunk in chunks:
                prompt = tokens_input(list(chunk.token_ids), cache_salt=cache_salt or None)
                yield StreamingInput(prompt=prompt, sampling_params=_sampling(chunk))

        first = SamplingParams(
            max_tokens=1, detokenize=False, output_kind=RequestOutputKind.DELTA, temperature=0.0
        )
        outputs = self._client.generate(inputs(), first, request_id)
        async with aclosing(outputs):
            async for output in outputs:
                answer = output.outputs[0]
                cached = output.num_cached_tokens or 0
                yield Step(tuple(answer.token_ids), answer.finish_reason, cached)


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
        kv_capacity=(cache.num_gpu_blocks - 1) * cache.block_size,  # vLLM keeps one block empty
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
