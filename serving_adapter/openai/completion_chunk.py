"""The fields of chat and completion objects that a client needs; others are skipped."""

from typing import Any

import msgspec

from s2l.serving_adapter.base import Usage


class PromptDetails(msgspec.Struct, frozen=True, gc=False):
    cached_tokens: int | None = None


class OutputDetails(msgspec.Struct, frozen=True, gc=False):
    reasoning_tokens: int | None = None


class UsageObject(msgspec.Struct, frozen=True, gc=False):
    """Token counts; ``prompt_cache_hit_tokens`` is DeepSeek's word for cached tokens."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: OutputDetails | None = None
    prompt_cache_hit_tokens: int | None = None


class Timings(msgspec.Struct, frozen=True, gc=False):
    """llama.cpp's counts: ``cache_n`` prompt tokens were there already."""

    cache_n: int | None = None


class Delta(msgspec.Struct, frozen=True, gc=False):
    """A piece of a message, or all of it. Reasoning has two names."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class Choice(msgspec.Struct, frozen=True, gc=False):
    """Chat streams a ``delta``, completions a ``text``; an answer in one piece is a ``message``."""

    delta: Delta | None = None
    text: str | None = None
    message: Delta | None = None
    finish_reason: str | None = None


class CompletionChunk(msgspec.Struct, frozen=True, gc=False):
    """One event, or an answer in one piece, or an error in their place."""

    choices: list[Choice] | None = None
    usage: UsageObject | None = None
    error: Any = None
    timings: Timings | None = None
    object: Any = None
    message: Any = None
    detail: Any = None


decode_chunk = msgspec.json.Decoder(CompletionChunk).decode


def usage_of(usage: UsageObject | None, timings: Timings | None) -> Usage:
    """The counts that the server gave."""
    found = usage or UsageObject()
    prompt, output = found.prompt_tokens_details, found.completion_tokens_details
    cached = prompt.cached_tokens if prompt else found.prompt_cache_hit_tokens
    if cached is None and timings is not None:
        cached = timings.cache_n
    return Usage(
        found.prompt_tokens,
        cached,
        found.completion_tokens,
        reasoning_tokens=output.reasoning_tokens if output else None,
    )
