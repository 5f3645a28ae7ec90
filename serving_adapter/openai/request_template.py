"""Requests to the chat and completions endpoints, encoded but for the context and the salt."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, Literal
from urllib.parse import SplitResult

import msgspec

from s2l.serving_adapter.openai.context_states import Pieces, escaped

Api = Literal["chat", "completions"]

NONCE_DIGITS: Final = 16
PATHS: Final[dict[str, str]] = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}


@dataclass(frozen=True, slots=True)
class Salting:
    """How requests are kept apart in the server's prefix cache.

    By the field ``cache_salt`` where the server has it. Elsewhere by a number at the very beginning
    of the prompt: always as many decimal digits, so that all prompts have the same number of
    tokens; it is part of the prompt, so answers may differ between salts.
    """

    by_field: bool

    def value(self, salt: str) -> bytes:
        """What is spliced into the request; always of the same length."""
        digest = sha256(salt.encode()).digest()
        if self.by_field:
            return digest[:16].hex().encode()
        number = int.from_bytes(digest[:8]) % 10**NONCE_DIGITS
        return b"%0*d" % (NONCE_DIGITS, number)

    @property
    def size(self) -> int:
        """Bytes of every value."""
        return 32 if self.by_field else NONCE_DIGITS


@dataclass(frozen=True, slots=True)
class EncodedRequest:
    """A request with two holes: ``before``, the salt, ``between``, context pieces, ``after``."""

    head: bytes
    before: bytes
    between: bytes
    after: bytes
    salt_size: int

    def filled(self, salt: bytes, context: Pieces, context_size: int) -> bytes:
        """The request's bytes; ``context_size`` is the length of all pieces. Nothing is encoded."""
        fixed = len(self.before) + len(self.between) + len(self.after) + self.salt_size
        length = b"%d\r\n\r\n" % (fixed + context_size)
        return b"".join((self.head, length, self.before, salt, self.between, *context, self.after))


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """What all requests of one adapter have in common.

    The prompt is the instructions, the context's documents and the question, joined as they are:
    in ``completions`` one text, in ``chat`` a system message and one user message. So the prompt
    with less context is how the prompt with more of it begins, up to the end of the user message.

    ``fields`` are added to every body; None removes a field that would be there.
    """

    address: SplitResult
    api: Api
    model: str
    salting: Salting
    api_key: str | None = None
    counts_each_event: bool = False
    keep_alive: bool = True
    max_tokens_field: str = "max_tokens"
    fields: Mapping[str, Any] = field(default_factory=dict)
    head: bytes = field(init=False)
    _encoded: dict[tuple[str, bool, int], tuple[bytes, bytes, bytes]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "head", self._encode_head())

    def answer(self, instructions: str, question: str, max_tokens: int) -> EncodedRequest:
        """The request for the answer, streamed."""
        options: dict[str, Any] = {"include_usage": True}
        if self.counts_each_event:
            options["continuous_usage_stats"] = True
        stream = {"stream": True, "stream_options": options}
        return self._encode(instructions, question, stream | {self.max_tokens_field: max_tokens})

    def warm_up(self, instructions: str) -> EncodedRequest:
        """The request that has a prompt without its question prefilled: one token, unstreamed."""
        return self._encode(instructions, "", {"stream": False, self.max_tokens_field: 1})

    def _encode(self, instructions: str, question: str, own: dict[str, Any]) -> EncodedRequest:
        key = (instructions, own["stream"], own[self.max_tokens_field])
        if (known := self._encoded.get(key)) is None:
            known = self._encoded[key] = self._encode_shared(instructions, own)
        before, between, closing = known
        after = escaped(question) + closing
        return EncodedRequest(self.head, before, between, after, self.salting.size)

    def _encode_shared(self, instructions: str, own: dict[str, Any]) -> tuple[bytes, bytes, bytes]:
        """What prompts of the same instructions and length have in common, held once."""
        wanted = {"model": self.model, "temperature": 0.0} | dict(self.fields) | own
        dropped = {name for name, value in self.fields.items() if value is None}
        known = {name: value for name, value in wanted.items() if name not in dropped}
        before = msgspec.json.encode(known)[:-1]
        opening, middle, closing = self._around(escaped(instructions))
        if self.salting.by_field:
            return before + b',"cache_salt":"', b'"' + opening + middle, closing
        return before + opening, b"\\n" + middle, closing

    def _around(self, instructions: bytes) -> tuple[bytes, bytes, bytes]:
        """JSON up to the prompt's first character, from there to the context, and after the
        question."""
        if self.api == "completions":
            return b',"prompt":"', instructions, b'"}'
        user = b'{"role":"user","content":"'
        if not instructions:
            return b',"messages":[' + user, b"", b'"}]}'
        system = b',"messages":[{"role":"system","content":"'
        return system, instructions + b'"},' + user, b'"}]}'

    def _encode_head(self) -> bytes:
        lines = [
            f"POST {self.address.path}{PATHS[self.api]} HTTP/1.1",
            f"Host: {self.address.netloc}",
            "Accept: text/event-stream, application/json",
            "Accept-Encoding: identity",
            "Content-Type: application/json",
            *((f"Authorization: Bearer {self.api_key}",) if self.api_key else ()),
            *(() if self.keep_alive else ("Connection: close",)),
            "Content-Length: ",
        ]
        return "\r\n".join(lines).encode()
