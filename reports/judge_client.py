"""Asks any OpenAI-compatible server for grades, several at a time, each only once."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import aiohttp

from s2l.reports.judge import INSTRUCTIONS, Case, Reply, body_of, content_key, score_of
from s2l.reports.judge_cache import JudgeCache
from s2l.reports.scores import Score, ScoreSource
from s2l.workloads.at_once import each

_AGAIN: Final = frozenset({408, 409, 429, 500, 502, 503, 504})
_WAIT_LIMIT_S: Final = 60.0
_SHOWN: Final = 200


class JudgeFailed(ConnectionError):
    """The judge did not answer as such a server should. Its text is one line."""


class _TryAgain(JudgeFailed):
    """A failure that may pass; ``wait_s`` is how long the server asks to wait, None: it does not
    say."""

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = None if wait_s is None else min(wait_s, _WAIT_LIMIT_S)


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """Which model grades, where, and how hard to try.

    ``url`` is the server's, with or without ``/v1``. ``first_wait_s`` is waited before the second
    try, and twice as long before each further one.
    """

    url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    concurrency: int = 8
    tries: int = 4
    timeout_s: float = 120.0
    first_wait_s: float = 1.0
    max_tokens: int = 512

    @property
    def endpoint(self) -> str:
        """Where chat completions are asked for."""
        parts = urlsplit(self.url)
        path = parts.path.rstrip("/") or "/v1"
        return urlunsplit((parts.scheme, parts.netloc, f"{path}/chat/completions", "", ""))


@dataclass(frozen=True, slots=True)
class Graded:
    """The scores in the order of the cases, and what made them."""

    scores: list[Score]
    source: ScoreSource


_Answered = tuple[Score, int | None, int | None]
"""A case's score, and the tokens of the prompt and of the reply that it cost."""


async def grade(
    cases: Sequence[Case],
    options: JudgeOptions,
    cache: JudgeCache,
    on_graded: Callable[[], None] = lambda: None,
) -> Graded:
    """Grade every case; replies that are kept are not asked for again.

    What was graded before a failure is kept, too: trying again goes on from there.

    Raises:
        JudgeFailed: the server refuses, is not there, or does not speak this protocol.
        OSError: the cache cannot be written.
    """
    judge = _Judge(options, cache, on_graded)
    timeout = aiohttp.ClientTimeout(total=options.timeout_s)
    headers = {"Authorization": f"Bearer {options.api_key}"} if options.api_key else {}
    async with aiohttp.ClientSession(timeout=timeout, headers=headers) as session:

        async def answered(case: Case) -> _Answered:
            reply = await judge.reply(session, case)
            return score_of(case, reply), reply.prompt_tokens, reply.completion_tokens

        done = await each(answered, cases, min(options.concurrency, len(cases)))
    return Graded([score for score, _, _ in done], _source(options, done, judge.kept))


def _source(options: JudgeOptions, done: Sequence[_Answered], kept: int) -> ScoreSource:
    parts = urlsplit(options.url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    place = f"{host}:{parts.port}" if parts.port else host
    return ScoreSource(
        model=options.model,
        url=urlunsplit((parts.scheme, place, parts.path, "", "")),
        prompt=INSTRUCTIONS,
        requests=len(done),
        cached_requests=kept,
        prompt_tokens=_total([prompt for _, prompt, _ in done]),
        completion_tokens=_total([completion for _, _, completion in done]),
    )


def _total(tokens: Sequence[int | None]) -> int | None:
    """The sum; None as soon as one is not known."""
    known = [n for n in tokens if n is not None]
    return sum(known) if len(known) == len(tokens) else None


@dataclass(slots=True)
class _Judge:
    options: JudgeOptions
    cache: JudgeCache
    on_graded: Callable[[], None]
    kept: int = 0
    under_way: dict[str, asyncio.Event] = field(default_factory=dict)

    async def reply(self, session: aiohttp.ClientSession, case: Case) -> Reply:
        """The judge's reply to one case; the same case twice is asked once."""
        body = body_of(case, self.options.model, self.options.max_tokens)
        key = content_key(body)
        while (twin := self.under_way.get(key)) is not None:
            await twin.wait()
        done = self.under_way[key] = asyncio.Event()
        try:
            found = await asyncio.to_thread(self.cache.get, key)
            if found is None:
                found = await self._asked(session, body)
                await asyncio.to_thread(self.cache.put, key, found)
            else:
                self.kept += 1
        finally:
            del self.under_way[key]
            done.set()
        self.on_graded()
        return found

    async def _asked(self, session: aiohttp.ClientSession, body: Mapping[str, object]) -> Reply:
        """Ask until there is a reply, waiting longer each time."""
        wait_s = self.options.first_wait_s
        for _ in range(self.options.tries - 1):
            try:
                return await self._tried(session, body)
            except _TryAgain as failure:
                await asyncio.sleep(wait_s if failure.wait_s is None else failure.wait_s)
            wait_s *= 2
        return await self._tried(session, body)

    async def _tried(self, session: aiohttp.ClientSession, body: Mapping[str, object]) -> Reply:
        try:
            async with session.post(self.options.endpoint, json=body) as answer:
                text = await answer.text(errors="replace")
        except (aiohttp.ClientError, TimeoutError) as error:
            said = _line(str(error)) or type(error).__name__
            raise _TryAgain(f"{self.options.url}: {said}") from None
        if answer.status == 200:
            return self._read(text)
        said = f"{self.options.url}: {answer.status}: {_line(text)}"
        if answer.status in _AGAIN:
            raise _TryAgain(said, _seconds(answer.headers.get("Retry-After")))
        raise JudgeFailed(said)

    def _read(self, text: str) -> Reply:
        """The reply in a chat completion; its content may be null (all of it was reasoning)."""
        try:
            document = json.loads(text)
            content = document["choices"][0]["message"]["content"] or ""
            usage = document.get("usage") or {}
            if not isinstance(content, str) or not isinstance(usage, dict):
                raise TypeError("a field has another type")
        except (ValueError, LookupError, TypeError):
            raise JudgeFailed(
                f"{self.options.url}: this is no chat completion: {_line(text)}"
            ) from None
        return Reply(content, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))


def _count(usage: Mapping[str, Any], name: str) -> int | None:
    found = usage.get(name)
    return found if isinstance(found, int) else None


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text or ""))
    except ValueError:
        return None


def _line(text: str) -> str:
    return " ".join(text.split())[:_SHOWN]
