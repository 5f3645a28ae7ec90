"""Reads a response to a chat or completions request, streamed or in one piece."""

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from s2l.serving_adapter.base import ServingError, Usage
from s2l.serving_adapter.openai.completion_chunk import (
    Choice,
    CompletionChunk,
    Timings,
    UsageObject,
    decode_chunk,
    usage_of,
)
from s2l.serving_adapter.openai.connection import BodySink, Headers, nowhere
from s2l.serving_adapter.openai.event_stream import MAX_EVENT_BYTES, EventStream
from s2l.serving_adapter.openai.server_error import error_object, http_error

FAILED_REASONS: Final = frozenset(("abort", "error"))
"""Finish reasons by which servers say that an answer was not finished."""


class OnText(Protocol):
    """Takes generated text, never empty."""

    def __call__(self, text: str, tokens: int | None, *, reasoning: bool = False) -> None: ...


class AnswerReader:
    """Tells what a response says, event by event; ``on_complete`` or ``on_error`` comes last, once.

    An answer is complete at ``[DONE]``, and at the end of the body once a finish reason was given:
    whatever is cut off after that is no part of it.
    """

    __slots__ = (
        "_body",
        "_events",
        "_finish_reason",
        "_headers",
        "_held",
        "_on_complete",
        "_on_error",
        "_on_text",
        "_status",
        "_timings",
        "_tokens",
        "_usage",
        "over",
        "started",
    )

    def __init__(
        self,
        on_text: OnText,
        on_complete: Callable[[Usage, str], None],
        on_error: Callable[[ServingError], None],
    ) -> None:
        self._on_text = on_text
        self._on_complete, self._on_error = on_complete, on_error
        self._events: EventStream | None = None
        self._body: list[bytes] = []
        self._held = 0
        self._status, self._headers = 0, Headers()
        self._usage: UsageObject | None = None
        self._timings: Timings | None = None
        self._finish_reason = ""
        self._tokens: int | None = 0  # told so far; None: not told with every text
        self.started = False
        """Whether text came."""
        self.over = False

    def on_head(self, status: int, headers: Headers) -> BodySink:
        """Choose how the body is read."""
        self._status, self._headers = status, headers
        if (coding := headers.get(b"content-encoding", b"identity")) != b"identity":
            shown = coding.decode(errors="replace")
            self._fail(ServingError("protocol", f"{shown} coding, which was not asked for"))
            return nowhere
        if 200 <= status < 300 and b"event-stream" in headers.get(b"content-type", b""):
            return self._open_stream().feed
        return self._collect

    def on_end(self) -> None:
        """The response is complete."""
        if self._events is not None:
            self._events.end()
        elif not self.over:
            self._read_whole(b"".join(self._body))
        if not self.over:
            text = "the answer ended without a finish reason and without [DONE]"
            self.on_lost(ServingError("disconnected", text))

    def on_lost(self, error: ServingError) -> None:
        """The response was cut off."""
        if self._finish_reason:
            self._complete()
        else:
            self._fail(error)

    def forget(self) -> None:
        """Tell nothing any more, and keep nothing of the request in memory."""
        self.over = True
        self._events = None
        self._body.clear()
        self._on_text, self._on_complete, self._on_error = _no_text, _no_end, _no_error

    def _open_stream(self) -> EventStream:
        self._events = EventStream(self._on_event, self._on_overflow)
        return self._events

    def _collect(self, data: bytes) -> None:
        """Keep a body that is no event stream by its type, unless it turns out to be one."""
        if self._events is not None:
            self._events.feed(data)
            return
        self._body.append(data)
        self._held += len(data)
        if self._held > MAX_EVENT_BYTES:
            self._on_overflow()
        elif self._status < 300 and b"".join(self._body[:2]).lstrip().startswith((b"data:", b":")):
            body = b"".join(self._body)
            self._body.clear()
            self._open_stream().feed(body)

    def _on_overflow(self) -> None:
        self._fail(ServingError("protocol", f"more than {MAX_EVENT_BYTES} bytes in one piece"))

    def _on_event(self, data: bytes) -> None:
        if self.over or not data:
            return
        if data == b"[DONE]":
            self._complete()
            return
        try:
            chunk = decode_chunk(data)
        except (msgspec.DecodeError, RecursionError) as error:
            shown = data[:80].decode(errors="replace")
            self._fail(ServingError("protocol", f"not a completion event: {shown!r} ({error})"))
            return
        if text := _text_alone(chunk):
            self.started, self._tokens = True, None
            self._on_text(text, None)
        else:
            self._read(chunk)

    def _read_whole(self, body: bytes) -> None:
        """A body in one piece: an answer, or an error."""
        if not 200 <= self._status < 300:
            self._fail(http_error(self._status, self._headers, body))
            return
        try:
            chunk = decode_chunk(body)
        except (msgspec.DecodeError, RecursionError):
            chunk = CompletionChunk()
        self._read(chunk)
        if chunk.choices:
            self._complete()
        elif not self.over:
            shown = body[:80].decode(errors="replace")
            self._fail(ServingError("protocol", f"neither events nor a completion: {shown!r}"))

    def _read(self, chunk: CompletionChunk) -> None:
        if chunk.usage is not None:
            self._usage = chunk.usage
        if chunk.timings is not None:
            self._timings = chunk.timings
        if chunk.error is not None or not chunk.choices:
            self._check(chunk)
        else:
            self._read_choice(chunk.choices[0], chunk.usage)

    def _read_choice(self, choice: Choice, usage: UsageObject | None) -> None:
        piece = choice.delta or choice.message
        if piece is None:
            if choice.text:
                self._say(choice.text, usage, reasoning=False)
        else:
            if reasoning := piece.reasoning_content or piece.reasoning:
                self._say(reasoning, usage, reasoning=True)
            if piece.content:
                self._say(piece.content, usage, reasoning=False)
        if choice.finish_reason:
            self._finish_reason = choice.finish_reason

    def _say(self, text: str, usage: UsageObject | None, *, reasoning: bool) -> None:
        """Counts that come with every text say how many tokens it has; a total that comes once,
        at the end, does not."""
        self.started = True
        tokens = None
        if usage is None or usage.completion_tokens is None:
            self._tokens = None
        elif self._tokens is not None:
            tokens = usage.completion_tokens - self._tokens
            self._tokens = usage.completion_tokens
        self._on_text(text, tokens, reasoning=reasoning)

    def _check(self, chunk: CompletionChunk) -> None:
        """An event without choices is an error, or says nothing of the answer."""
        error = chunk.error or chunk.message or chunk.detail
        if chunk.object == "error" or error:
            self._fail(error_object(error or "", started=self.started))

    def _complete(self) -> None:
        if self.over:
            return
        if self._finish_reason in FAILED_REASONS:
            text = f"the server gave up on the answer (finish reason {self._finish_reason!r})"
            self._fail(ServingError("server_error", text))
            return
        on_complete, usage = self._on_complete, usage_of(self._usage, self._timings)
        self.forget()
        on_complete(usage, self._finish_reason)

    def _fail(self, error: ServingError) -> None:
        if not self.over:
            on_error = self._on_error
            self.forget()
            on_error(error)


def _text_alone(chunk: CompletionChunk) -> str | None:
    """The text of an event that says nothing else: nearly all are so, and reading them at once
    saves a fifth of what a request costs."""
    if not chunk.choices or chunk.usage or chunk.error is not None or chunk.timings:
        return None
    choice = chunk.choices[0]
    if choice.finish_reason or choice.message:
        return None
    if (delta := choice.delta) is None:
        return choice.text
    return None if delta.reasoning_content or delta.reasoning else delta.content


def _no_text(text: str, tokens: int | None, *, reasoning: bool = False) -> None:
    """Nobody listens any more."""


def _no_end(usage: Usage, finish_reason: str) -> None:
    """Nobody listens any more."""


def _no_error(error: ServingError) -> None:
    """Nobody listens any more."""
