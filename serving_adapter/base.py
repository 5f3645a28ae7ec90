"""What the replayer needs of a server, whatever its protocol."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol


class ServingError(Exception):
    """A request or a server that failed. ``error_type`` is one of a small set of codes.

    ``refused`` (nothing listens), ``connect`` (the connection failed otherwise), ``protocol``
    (something answers, but does not speak this protocol), ``rejected`` (the server refused the
    request and said why), ``disconnected`` (the connection ended before the answer did) and
    ``server_error``.
    """

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a server says of itself. ``max_model_len`` is in tokens, None where unknown."""

    server: str
    version: str
    model: str
    max_model_len: int | None = None
    separate_caches: bool = False
    """Whether a session can be kept from reusing what other sessions prefilled."""
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContextDocument:
    """One document of a context, as it is sent."""

    doc_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ContextChunk:
    """One change of the context: documents added at its end, or the whole of it given anew."""

    documents: tuple[ContextDocument, ...]
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """What one request sends: preamble, context chunks in order of arrival, question.

    ``cache_salt`` separates the prefix cache of sessions with different salts.
    """

    instructions: str
    chunks: tuple[ContextChunk, ...]
    question: str
    max_output_tokens: int
    cache_salt: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counts them; None where it does not say."""

    prompt_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    invalidated_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Prefilled:
    """The server holds chunk ``index``, and ``tokens`` of the prompt by then."""

    index: int
    tokens: int


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Generated text, never empty; ``tokens`` is None where the server does not say how many."""

    text: str
    tokens: int | None


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer is complete."""

    usage: Usage
    finish_reason: str


ServerEvent = Prefilled | TextDelta | Finished


class Session(Protocol):
    """One request under way. Nothing is encoded or tokenised while it runs."""

    async def send_chunk(self, index: int) -> None:
        """Send context chunk ``index`` of the prompt."""

    async def ask(self) -> None:
        """Send the question and ask for the answer."""

    def events(self) -> AsyncIterator[ServerEvent]:
        """What the server says, until ``Finished``. Raises ServingError."""


class PreparedRequest(Protocol):
    """A prompt encoded for the wire."""

    def open(self) -> AbstractAsyncContextManager[Session]:
        """Connect. Raises ServingError. Leaving the context closes and aborts what still runs."""


class ServingAdapter(Protocol):
    """One server under test."""

    name: str

    async def __aenter__(self) -> "ServingAdapter": ...

    async def __aexit__(self, *exc: object) -> None: ...

    async def probe(self) -> ServerInfo:
        """Ask the server what it is. Raises ServingError when it is not one of ours to speak to."""

    async def truncate(self, texts: Sequence[str], budgets: Sequence[int]) -> list[str]:
        """Each text cut to at most its budget of tokens, by the server's own tokenizer."""

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, by the server's own tokenizer."""

    def prepare(self, prompt: Prompt) -> PreparedRequest:
        """Encode the prompt, before anything is timed."""
