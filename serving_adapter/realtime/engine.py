"""What a Realtime server needs of an inference engine."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Chunk:
    """Token ids to prefill after those before them.

    ``max_tokens`` is 1 for all but the last chunk: engines sample at least one token at the end of
    each, and that of an intermediate chunk is thrown away. A lower ``priority`` goes first, where
    the engine knows priorities; that of a request's first chunk counts.
    """

    token_ids: tuple[int, ...]
    max_tokens: int
    temperature: float
    last: bool
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """New tokens of the chunk in flight; ``finish_reason`` is set when the chunk is done."""

    token_ids: tuple[int, ...]
    finish_reason: str | None
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; ``role`` is ``system``, ``user`` or ``assistant``."""

    role: str
    content: str


class EngineAborted(Exception):
    """The engine gave a request up before its end, and nobody had asked it to."""


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """Sizes in tokens. ``kv_capacity`` is what all sessions together can hold; ``aliases`` are
    other names of the model."""

    engine: str
    version: str
    model: str
    max_model_len: int
    kv_capacity: int
    block_size: int
    max_sessions: int
    aliases: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)

    def serves(self, model: str) -> bool:
        """Whether that is a name of the model."""
        return model == self.model or model in self.aliases


class TextDecoder(Protocol):
    """Turns generated tokens into text as they come; special tokens give none."""

    def push(self, token_ids: Sequence[int]) -> str:
        """Text that is complete with these tokens: empty in the middle of a character."""


class Engine(Protocol):
    """An inference engine that takes its prompt in chunks."""

    info: EngineInfo

    async def tokenize(self, text: str, *, start: bool = False) -> list[int]:
        """Token ids of the text, without special tokens unless it is the prompt's ``start``."""

    def render(self, messages: Sequence[Message]) -> str:
        """The chat template's text up to where the model answers; plain text without a template.

        Raises what the template raises: some have no place for some orders of roles.
        """

    def decoder(self) -> TextDecoder:
        """A decoder for one answer."""

    def run(
        self, request_id: str, chunks: AsyncIterator[Chunk], cache_salt: str
    ) -> AsyncIterator[Step]:
        """Prefill the chunks in order, then generate. A first chunk that is the last one is an
        ordinary request.

        The engine asks for a chunk when it can take one; the caller hands out the next only when
        the one before is done. Closing the iterator aborts and frees the KV blocks.

        Raises:
            EngineAborted: it gave the request up. Other errors are the engine's own.
        """
