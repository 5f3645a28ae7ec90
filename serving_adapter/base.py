"""What the replayer needs of a server, whatever its protocol."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Protocol

MOST_TOKENS: Final = 2**31 - 1
"""No request has more: a larger count is an error of whoever counted."""


class ServingError(Exception):
    """A request or a server that failed. ``error_type`` is one of a small set of codes.

    ``refused`` (nothing listens), ``connect`` (the connection failed otherwise),
    ``connect_timeout``, ``protocol`` (something answers, but does not speak this protocol),
    ``rejected`` (the server refused the request and said why), ``rate_limited`` (it said to come
    back later), ``disconnected`` (the connection ended before the answer did) and
    ``server_error``. ``retry_after_s`` is what the server asked for, if it did.
    """

    def __init__(
        self, error_type: str, message: str, *, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied to another process with all that it says."""
        return type(self)._made, (self.error_type, str(self), self.retry_after_s)

    @classmethod
    def _made(cls, error_type: str, message: str, retry_after_s: float | None) -> "ServingError":
        return cls(error_type, message, retry_after_s=retry_after_s)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What can be asked of a server through an adapter; asking for more is an error beforehand."""

    streams_context: bool = True
    """Whether context can be sent before the question."""
    replaces_context: bool = True
    """Whether context that was sent can be withdrawn."""
    counts_tokens: bool = True
    """Whether texts can be counted and cut by the server's own tokenizer."""
    separate_caches: bool = False
    """Whether requests with different salts never share what was prefilled."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a server says of itself. ``max_model_len`` is in tokens, None where unknown."""

    server: str
    version: str
    model: str
    max_model_len: int | None = None
    capabilities: Capabilities = field(default_factory=Capabilities)
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
    """What one request sends: preamble, context chunks in order of arrival, question."""

    instructions: str
    chunks: tuple[ContextChunk, ...]
    question: str
    max_output_tokens: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counts them; None where it does not say.

    ``invalidated_tokens`` were prefilled and thrown away because context was replaced;
    ``discarded_tokens`` were generated only because early prefill cannot do without, and are no
    part of the answer. ``found_tokens``, of those cached, were there before the request had put
    anything there.
    """

    prompt_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    invalidated_tokens: int | None = None
    discarded_tokens: int | None = None
    reasoning_tokens: int | None = None
    found_tokens: int | None = None

    def plausible(self) -> "Usage":
        """The same, without counts that no request can have: a server's nonsense is no count."""
        counts = {f.name: getattr(self, f.name) for f in fields(self)}
        wrong = {n: None for n, v in counts.items() if v is not None and not 0 <= v <= MOST_TOKENS}
        return replace(self, **wrong) if wrong else self


class Listener(Protocol):
    """Who is told of one request, at once and on the event loop: it notes the time and returns.

    The last call is ``on_finished`` or ``on_failed``, exactly one of them unless the session was
    closed before.
    """

    def on_sent(self, index: int) -> None:
        """Context chunk ``index`` was handed to the connected socket."""

    def on_asked(self) -> None:
        """The question was handed to the connected socket: nothing is left to send."""

    def on_prefilled(self, index: int, tokens: int) -> None:
        """The server holds chunk ``index``, and ``tokens`` of the prompt by then."""

    def on_text(self, text: str, tokens: int | None, *, reasoning: bool = False) -> None:
        """Generated text, never empty; ``tokens`` is None where the server does not say."""

    def on_resent(self, error: ServingError) -> None:
        """The connection was found closed, and the same request goes out on another: what follows
        ``on_asked`` then comes again."""

    def on_finished(self, usage: Usage, finish_reason: str) -> None:
        """The answer is complete."""

    def on_failed(self, error: ServingError) -> None:
        """The request failed; nothing more comes."""


class Session(Protocol):
    """One request under way. Nothing is encoded or tokenised while it runs, and nothing waits:
    what cannot be sent yet is sent, in order, as soon as the connection is there."""

    def send_chunk(self, index: int) -> None:
        """Send context chunk ``index`` of the prompt."""

    def ask(self) -> None:
        """Send the question and ask for the answer."""

    def close(self) -> None:
        """Abort what still runs and let the connection go; the listener hears nothing more."""


class PreparedRequest(Protocol):
    """A prompt encoded for the wire; it can be started any number of times."""

    def start(self, listener: Listener, *, salt: str) -> Session:
        """Begin a request on the running event loop; connecting goes on in the background.

        Requests with different salts share no cached prefix where the server can keep them apart.
        """


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

    async def ready(self, requests: int) -> None:
        """Open what so many requests at once will need, where it is kept between requests. What
        cannot be opened is left to the requests, whose failures count."""

    def prepare(self, prompt: Prompt) -> PreparedRequest:
        """Encode the prompt, before anything is timed. Raises ServingError where it asks for more
        than the capabilities."""
