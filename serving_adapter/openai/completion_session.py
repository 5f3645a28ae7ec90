"""One request to a chat or completions endpoint, from the first context to the answer."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from s2l.serving_adapter.base import Listener, ServingError, Usage
from s2l.serving_adapter.openai.answer_reader import AnswerReader
from s2l.serving_adapter.openai.connection_pool import Lease
from s2l.serving_adapter.openai.early_prefill import EarlyPrefill
from s2l.serving_adapter.openai.exchange import Exchange
from s2l.serving_adapter.openai.prefill_account import discarded_tokens, invalidated_tokens

if TYPE_CHECKING:
    from s2l.serving_adapter.openai.prepared_completion import PreparedCompletion


class CompletionSession:
    """Context that is followed by the question at once goes out in one request. Context that comes
    before it is sent in warm-ups, requests for one token that leave the prompt so far in the
    server's prefix cache; they start when the event loop turns.

    The question does not wait for a warm-up that still runs and is how the whole prompt begins.
    A server that schedules like vLLM gives the running prefill its steps first and finds its blocks
    for the second request as they are filled, so nothing is computed twice; waiting for the
    warm-up's answer would add its sampling and a round trip. (Seen on vLLM 0.32 on a CPU, asked
    0.3 s into the prefill of 1,186 tokens: 1,152 cached either way, median time to the first token
    1.7 s, and 2.9 s when the warm-up was waited for.) A warm-up of no use is cancelled.

    ``on_sent`` is called for a chunk when the first request that carries it is handed to the
    connected socket: its own warm-up, one that it was merged into, or the question's request.
    ``on_asked`` is called so for the question's request, again where that is sent again.
    A warm-up that fails before the question fails the request: what follows would not be measured
    as asked for.
    """

    __slots__ = (
        "_answer",
        "_arrived",
        "_asked",
        "_early",
        "_lease",
        "_listener",
        "_prefilled",
        "_prepared",
        "_reader",
        "_salt",
        "_scheduled",
        "_sent",
    )

    def __init__(self, prepared: "PreparedCompletion", listener: Listener, salt: bytes) -> None:
        self._prepared, self._salt = prepared, salt
        self._listener: Listener | None = listener  # None: over
        self._lease: Lease | None = prepared.pool.lease()
        self._early: EarlyPrefill | None = None
        self._answer: Exchange | None = None
        self._reader: AnswerReader | None = None
        self._scheduled: asyncio.Handle | None = None
        self._asked = False
        self._arrived = self._sent = self._prefilled = 0

    def send_chunk(self, index: int) -> None:
        """Context chunk ``index`` has arrived; after the question it is no part of the prompt."""
        if self._listener is None or self._asked:
            return
        self._arrived = index + 1
        if self._scheduled is None:
            self._scheduled = asyncio.get_running_loop().call_soon(self._warm_up)

    def ask(self) -> None:
        """Send the whole prompt."""
        if self._listener is None or self._asked:
            return
        self._asked = True
        self._unschedule()
        lease = self._early.stop_before(self._arrived) if self._early is not None else None
        self._send(self._one_of(lease))

    def close(self) -> None:
        """Abort what runs."""
        self._end(cancel=True)

    def _warm_up(self) -> None:
        self._scheduled = None
        if self._early is None:
            self._early = EarlyPrefill(
                self._prepared,
                self._salt,
                self._on_written,
                self._on_resent,
                self._on_warm,
                self._on_early_error,
            )
        lease, self._lease = self._lease, None
        self._early.want(self._arrived, lease)
        if self._listener is not None:  # the question is not to wait for a connection either
            self._lease = self._prepared.pool.lease()

    def _send(self, lease: Lease) -> None:
        prepared, state = self._prepared, self._arrived
        assert self._listener is not None
        context, size = prepared.states.states[state], prepared.states.sizes[state]
        request = prepared.answer.filled(self._salt, context, size)
        self._reader = AnswerReader(self._listener.on_text, self._on_complete, self._on_error)
        self._answer = Exchange(
            prepared.pool, request, self._reader, self._on_asked, self._on_resent
        )
        self._answer.start(lease)

    def _one_of(self, lease: Lease | None) -> Lease:
        """A lease at hand, or a new one."""
        held, self._lease = self._lease, None
        if lease is not None and held is not None:
            held.give_back()
        return lease or held or self._prepared.pool.lease()

    def _on_asked(self) -> None:
        self._on_written(self._arrived)
        if self._listener is not None:
            self._listener.on_asked()

    def _on_written(self, state: int) -> None:
        if self._listener is not None:
            first, self._sent = self._sent, max(self._sent, state)
            for index in range(first, self._sent):
                self._listener.on_sent(index)

    def _on_resent(self, error: ServingError) -> None:
        if self._listener is not None:
            self._listener.on_resent(error)

    def _on_warm(self, state: int, tokens: int) -> None:
        if self._listener is not None:
            first, self._prefilled = self._prefilled, state
            for index in range(first, state):
                self._listener.on_prefilled(index, tokens)

    def _on_complete(self, usage: Usage, finish_reason: str) -> None:
        listener, counted = self._listener, self._with_early_prefill(usage)
        self._end(cancel=False)
        if listener is not None:
            listener.on_finished(counted, finish_reason)

    def _with_early_prefill(self, usage: Usage) -> Usage:
        warm_ups = self._early.warm_ups if self._early is not None else ()
        prepared = self._prepared
        invalidated = invalidated_tokens(
            warm_ups, prepared.states, self._arrived, prepared.fixed_bytes
        )
        return replace(
            usage, invalidated_tokens=invalidated, discarded_tokens=discarded_tokens(warm_ups)
        )

    def _on_early_error(self, error: ServingError) -> None:
        if not self._asked:
            told = ServingError(
                error.error_type, f"early prefill: {error}", retry_after_s=error.retry_after_s
            )
            self._on_error(told)

    def _on_error(self, error: ServingError) -> None:
        listener = self._listener
        if listener is not None:
            self._end(cancel=True)
            listener.on_failed(error)

    def _unschedule(self) -> None:
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None

    def _end(self, *, cancel: bool) -> None:
        """Let go of everything: nothing here may keep a finished request in memory."""
        self._unschedule()
        self._listener = None
        answer, self._answer = self._answer, None
        early, self._early = self._early, None
        lease, self._lease = self._lease, None
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.forget()
        if answer is not None and cancel:
            lease = answer.cancel() or lease
        elif answer is not None:
            answer.detach()
        if early is not None:
            early.close()
        if lease is not None:
            lease.give_back()
