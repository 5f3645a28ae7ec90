"""The bytes of OpenAI's answers, as vLLM writes them; what can be made before is made once."""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

STREAM_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)
DONE: Final = b"data: [DONE]\n\n"
LAST_CHUNK: Final = b"0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Count:
    """Tokens of one answer, for ``usage``."""

    prompt: int
    cached: int
    output: int

    def json(self) -> str:
        """The ``usage`` object."""
        return (
            f'{{"prompt_tokens":{self.prompt},"total_tokens":{self.prompt + self.output},'
            f'"completion_tokens":{self.output},'
            f'"prompt_tokens_details":{{"cached_tokens":{self.cached}}}}}'
        )


@dataclass(frozen=True, slots=True)
class Kind:
    """How completions and chats differ. ``{text}`` and ``{finish}`` are JSON."""

    id_prefix: str
    stream_object: str
    whole_object: str
    piece: str
    whole: str
    opening: str | None


_END: Final = '"logprobs":null,"finish_reason":{finish},"stop_reason":null}}'
COMPLETION: Final = Kind(
    id_prefix="cmpl-",
    stream_object="text_completion",
    whole_object="text_completion",
    piece='{{"index":0,"text":{text},' + _END,
    whole='{{"index":0,"text":{text},' + _END,
    opening=None,
)
CHAT: Final = Kind(
    id_prefix="chatcmpl-",
    stream_object="chat.completion.chunk",
    whole_object="chat.completion",
    piece='{{"index":0,"delta":{{"content":{text}}},' + _END,
    whole='{{"index":0,"message":{{"role":"assistant","content":{text}}},' + _END,
    opening='{"index":0,"delta":{"role":"assistant","content":""},'
    '"logprobs":null,"finish_reason":null}',
)


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def error_json(message: str, kind: str, status: int) -> bytes:
    """The body of a failed request."""
    error = {"message": message, "type": kind, "param": None, "code": status}
    return json.dumps({"error": error}).encode()


@lru_cache(maxsize=64)
def words(start: int, end: int) -> str:
    """The words of an answer from one token to another; the first is the prompt's digest, and is
    not among them."""
    return "".join(f" word{i}" for i in range(max(1, start), end))


class AnswerFormat:
    """Writes the answers of one kind, ``tokens_per_event`` in an event.

    Events in the middle of an answer differ from those of other answers in the id alone, and chunk
    sizes in the id's length: they are kept in two parts, what is before the id and what is after.
    """

    def __init__(self, kind: Kind, model: str, tokens_per_event: int) -> None:
        self.kind = kind
        self._model = json.dumps(model)
        self.tokens_per_event = tokens_per_event
        self._parts: dict[int, list[tuple[bytes, bytes]]] = {}

    def identity(self, request_id: str, created_s: int, *, stream: bool) -> bytes:
        """The part of each event that is this answer's own: id, object and time."""
        name = self.kind.stream_object if stream else self.kind.whole_object
        text = f'{self.kind.id_prefix}{request_id}","object":"{name}","created":{created_s}'
        return text.encode()

    def middle(self, identity: bytes, index: int) -> bytes:
        """The chunk with event ``index`` of an answer, neither its first nor its last."""
        parts = self._parts.get(len(identity))
        if parts is None or index >= len(parts):
            parts = self._extend(len(identity), index)
        before, after = parts[index]
        return before + identity + after

    def piece(self, text: str, finish_reason: str | None = None) -> str:
        """One choice of a stream."""
        finish = "null" if finish_reason is None else f'"{finish_reason}"'
        return self.kind.piece.format(text=f'"{text}"', finish=finish)

    def event(self, identity: bytes, choice: str, usage: str | None = None) -> bytes:
        """One event with at most one choice."""
        return self._object(b'data: {"id":"' + identity, choice, usage) + b"\n\n"

    def whole(self, identity: bytes, text: str, finish_reason: str, usage: str) -> bytes:
        """The body of an answer that is not streamed."""
        choice = self.kind.whole.format(text=f'"{text}"', finish=f'"{finish_reason}"')
        return self._object(b'{"id":"' + identity, choice, usage)

    def _object(self, start: bytes, choice: str, usage: str | None) -> bytes:
        tail = "" if usage is None else f',"usage":{usage}'
        return start + f',"model":{self._model},"choices":[{choice}]{tail}}}'.encode()

    def _extend(self, length: int, index: int) -> list[tuple[bytes, bytes]]:
        parts = self._parts.setdefault(length, [])
        marker = b"\0" * length
        for i in range(len(parts), index + 1):
            text = words(i * self.tokens_per_event, (i + 1) * self.tokens_per_event)
            before, after = chunk(self.event(marker, self.piece(text))).split(marker)
            parts.append((before, after))
        return parts
