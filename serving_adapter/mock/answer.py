"""The bytes of one answer, step by step."""

import hashlib
import time
from typing import Final

from s2l.serving_adapter.mock.http_connection import head
from s2l.serving_adapter.mock.openai_format import (
    DONE,
    LAST_CHUNK,
    AnswerFormat,
    Count,
    chunk,
    error_json,
    words,
)
from s2l.serving_adapter.mock.openai_request import Asked
from s2l.serving_adapter.mock.scheduler import Job, Totals

GARBAGE: Final = b'data: {"id": "\xff\xfe, "choices": [{\n\n'


def failure() -> bytes:
    """The error object of a fault."""
    return error_json("this failure was asked for", "InternalServerError", 500)


class Answer:
    """What is written at each step. A streamed answer has a step for each event; one that is not
    streamed has two: its first token, when nothing is written, and its last."""

    def __init__(
        self,
        asked: Asked,
        job: Job,
        answer_format: AnswerFormat,
        request_id: str,
        totals: Totals,
        fault: str,
    ) -> None:
        self.format = answer_format
        self._asked = asked
        self._job = job
        self._totals = totals
        self._fault = fault
        self._per_event = answer_format.tokens_per_event
        self.steps = -(-asked.output_tokens // self._per_event) if asked.stream else 2
        self._identity = answer_format.identity(request_id, int(time.time()), stream=asked.stream)
        prebuilt = asked.stream and not asked.continuous_usage
        self._middle = range(1, self.steps - 1 if prebuilt else 1)

    def step(self, index: int) -> bytes:
        """What is due then."""
        if index in self._middle:
            self._totals.output_tokens += self._per_event
            return self.format.middle(self._identity, index)
        if self._asked.stream:
            return self._edge(index)
        return self._whole() if index else b""

    def tokens(self, steps: int) -> int:
        """Tokens written in so many steps."""
        if self._asked.stream:
            return min(steps * self._per_event, self._asked.output_tokens)
        return self._asked.output_tokens if steps == self.steps else 0

    def _edge(self, index: int) -> bytes:
        """The chunk with the first event or the last one, and what belongs to it."""
        asked, last = self._asked, index == self.steps - 1
        start, end = self.tokens(index), self.tokens(index + 1)
        self._totals.output_tokens += end - start
        text = (self._digest() if start == 0 else "") + words(start, end)
        data = b""
        if start == 0 and self.format.kind.opening:
            data = self.format.event(self._identity, self.format.kind.opening)
        piece = self.format.piece(text, asked.finish_reason if last else None)
        usage = self._usage(end) if asked.continuous_usage else None
        data += self.format.event(self._identity, piece, usage)
        return self._close(data) if last else chunk(data)

    def _close(self, data: bytes) -> bytes:
        if self._asked.include_usage:
            usage = self._usage(self._asked.output_tokens)
            data += self.format.event(self._identity, "", usage)
        return chunk(data if self._fault == "no-done" else data + DONE) + LAST_CHUNK

    def _whole(self) -> bytes:
        """Head and body of an answer that is not streamed."""
        asked, n = self._asked, self._asked.output_tokens
        self._totals.output_tokens += n
        text = self._digest() + words(0, n)
        status = 200
        body = self.format.whole(self._identity, text, asked.finish_reason, self._usage(n))
        if self._fault == "garbage":
            body = GARBAGE
        elif self._fault == "error-in-stream":
            status, body = 500, failure()
        header = head(status, f"content-length: {len(body)}\r\n", "application/json")
        return header + (body[: len(body) // 2] if self._fault == "cut" else body)

    def _digest(self) -> str:
        """The first word: equal prompts can be told by it."""
        return hashlib.sha256(self._asked.text.encode()).hexdigest()[:12]

    def _usage(self, output_tokens: int) -> str:
        return Count(self._job.prompt_tokens, self._job.cached_tokens, output_tokens).json()
