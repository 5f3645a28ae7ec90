"""What is asked for over ``/v1/completions`` and ``/v1/chat/completions``."""

from dataclasses import dataclass
from typing import TypeVar

import msgspec

from s2l.serving_adapter.mock.vocabulary import Vocabulary, count_tokens, render_turns


class BadRequest(Exception):
    """A request that is refused, with its HTTP status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class StreamOptions(msgspec.Struct):
    """``stream_options``"""

    include_usage: bool | None = False
    continuous_usage_stats: bool | None = False


class _Body(msgspec.Struct, kw_only=True):
    model: str | None = None
    max_tokens: int | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    cache_salt: str | None = None
    n: int | None = 1


class CompletionBody(_Body, kw_only=True):
    """``/v1/completions``: a text, or the ids of its tokens."""

    prompt: str | list[str | int]


class _Part(msgspec.Struct):
    type: str
    text: str = ""


class Message(msgspec.Struct):
    """One turn of a chat."""

    role: str
    content: str | list[_Part] | None = None


class ChatBody(_Body, kw_only=True):
    """``/v1/chat/completions``"""

    messages: list[Message]
    max_completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that can be answered. ``finish_reason`` is ``length`` where the client said how
    long the answer is to be, else ``stop``."""

    text: str
    prompt_tokens: int
    output_tokens: int
    finish_reason: str
    stream: bool
    include_usage: bool
    continuous_usage: bool
    salt: str


_AnyBody = TypeVar("_AnyBody", bound=_Body)
_COMPLETION = msgspec.json.Decoder(CompletionBody)
_CHAT = msgspec.json.Decoder(ChatBody)


def completion_asked(body: bytes, vocabulary: Vocabulary, output_tokens: int, model: str) -> Asked:
    """Decode ``/v1/completions``; answers are ``output_tokens`` long where the client does not say.

    Raises:
        BadRequest: what is wrong.
    """
    decoded = _decode(_COMPLETION, body)
    prompt = decoded.prompt
    if isinstance(prompt, str):
        text = prompt
    elif len(prompt) == 1 and isinstance(prompt[0], str):
        text = prompt[0]
    else:
        text = _text_of_ids(prompt, vocabulary)
    return _asked(decoded, text, decoded.max_tokens, output_tokens, model)


def chat_asked(body: bytes, vocabulary: Vocabulary, output_tokens: int, model: str) -> Asked:
    """Decode ``/v1/chat/completions``, see ``completion_asked``."""
    decoded = _decode(_CHAT, body)
    limit = decoded.max_completion_tokens
    limit = decoded.max_tokens if limit is None else limit
    return _asked(decoded, render_chat(decoded.messages), limit, output_tokens, model)


def render_chat(messages: list[Message]) -> str:
    """The prompt of these turns."""
    return render_turns((message.role, _content(message)) for message in messages)


def _content(message: Message) -> str:
    if isinstance(message.content, list):
        return "".join(part.text for part in message.content)
    return message.content or ""


def _decode(decoder: "msgspec.json.Decoder[_AnyBody]", body: bytes) -> _AnyBody:
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(str(error)) from None


def _text_of_ids(prompt: list[str | int], vocabulary: Vocabulary) -> str:
    ids = [token for token in prompt if isinstance(token, int)]
    if len(ids) != len(prompt):
        raise BadRequest("one prompt a request: a text, or a list of token ids")
    try:
        return vocabulary.decode(ids)
    except IndexError:
        raise BadRequest("a token id is out of vocabulary: use those of /tokenize") from None


def _asked(body: _Body, text: str, limit: int | None, otherwise: int, model: str) -> Asked:
    if body.model not in (None, model):
        raise BadRequest(f"The model `{body.model}` does not exist.", 404)
    if body.n not in (None, 1):
        raise BadRequest("n must be 1: this server gives one answer a request")
    if limit is not None and limit < 1:
        raise BadRequest(f"max_tokens must be at least 1, got {limit}")
    if not text:
        raise BadRequest("the prompt is empty")
    options = body.stream_options or StreamOptions()
    return Asked(
        text=text,
        prompt_tokens=count_tokens(text),
        output_tokens=limit or otherwise,
        finish_reason="length" if limit else "stop",
        stream=bool(body.stream),
        include_usage=bool(options.include_usage),
        continuous_usage=bool(options.include_usage and options.continuous_usage_stats),
        salt=body.cache_salt or "",
    )
