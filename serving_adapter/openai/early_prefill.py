"""Has a server prefill a context that is still growing, by requests for one token.

One request at a time: what arrives while it runs is merged into the next. A running request whose
context is not how the new one begins is cancelled, which makes the server stop working on it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from s2l.serving_adapter.base import ServingError, Usage
from s2l.serving_adapter.openai.answer_reader import AnswerReader
from s2l.serving_adapter.openai.connection_pool import Lease
from s2l.serving_adapter.openai.exchange import Exchange
from s2l.serving_adapter.openai.prefill_account import WarmUp

if TYPE_CHECKING:
    from s2l.serving_adapter.openai.prepared_completion import PreparedCompletion


class EarlyPrefill:
    """The warm-ups of one request.

    ``on_written(state)`` is called when a warm-up of that state of the context was handed to the
    socket, ``on_warm(state, tokens)`` when it was answered, ``on_failed`` when one failed.
    """

    __slots__ = (
        "_exchange",
        "_on_failed",
        "_on_resent",
        "_on_warm",
        "_on_written",
        "_prepared",
        "_reader",
        "_running",
        "_salt",
        "_wanted",
        "_written",
        "warm_ups",
    )

    def __init__(
        self,
        prepared: "PreparedCompletion",
        salt: bytes,
        on_written: Callable[[int], None],
        on_resent: Callable[[ServingError], None],
        on_warm: Callable[[int, int], None],
        on_failed: Callable[[ServingError], None],
    ) -> None:
        self._prepared, self._salt = prepared, salt
        self._on_written, self._on_resent = on_written, on_resent
        self._on_warm, self._on_failed = on_warm, on_failed
        self._exchange: Exchange | None = None
        self._reader: AnswerReader | None = None
        self._running = 0
        self._written = False
        self._wanted = 0
        self.warm_ups: list[WarmUp] = []

    def want(self, state: int, lease: Lease | None = None) -> None:
        """Have this state prefilled next, over the lease if there is one."""
        self._wanted = state
        states = self._prepared.states
        if self._exchange is not None and not states.is_prefix(self._running, state):
            unused = self._cancel()
            if lease is None:
                lease, unused = unused, None
            if unused is not None:
                unused.give_back()
        if self._exchange is None:
            self._submit(lease)
        elif lease is not None:
            lease.give_back()

    def stop_before(self, final: int) -> Lease | None:
        """No more warm-ups: the whole prompt is sent now. One that runs and is of use goes on.

        What was leased for one that could not be written yet comes back.
        """
        self._wanted = 0
        useful = self._written and self._prepared.states.is_prefix(self._running, final)
        return None if useful else self._cancel()

    def close(self) -> None:
        """Cancel what runs."""
        self._wanted = 0
        if (lease := self._cancel()) is not None:
            lease.give_back()

    def _submit(self, lease: Lease | None) -> None:
        prepared, state = self._prepared, self._wanted
        lease = lease or prepared.pool.lease()
        if self._is_held(state):
            lease.give_back()
            self._on_written(state)
            return
        context, size = prepared.states.states[state], prepared.states.sizes[state]
        request = prepared.warm_up.filled(self._salt, context, size)
        self._reader = AnswerReader(_drop_text, self._on_answered, self._on_error)
        self._running, self._written = state, False
        self._exchange = Exchange(
            prepared.pool, request, self._reader, self._on_request_written, self._on_resent
        )
        self._exchange.start(lease)

    def _is_held(self, state: int) -> bool:
        """Whether a warm-up that was answered has all of it, or there is nothing to warm up."""
        states = self._prepared.states
        done = (w.state for w in self.warm_ups if w.output_tokens)
        return not states.sizes[state] or any(states.is_prefix(state, held) for held in done)

    def _cancel(self) -> Lease | None:
        exchange, self._exchange = self._exchange, None
        reader, self._reader = self._reader, None
        if exchange is None:
            return None
        if reader is not None:
            reader.forget()
        if self._written:
            self.warm_ups.append(WarmUp(self._running, None, 0))
        return exchange.cancel()

    def _on_request_written(self) -> None:
        self._written = True
        self._on_written(self._running)

    def _on_answered(self, usage: Usage, finish_reason: str) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.detach()
        generated = 1 if usage.output_tokens is None else usage.output_tokens
        self.warm_ups.append(WarmUp(self._running, usage.prompt_tokens, generated))
        self._on_warm(self._running, usage.prompt_tokens or 0)
        if self._wanted > self._running:
            self._submit(None)

    def _on_error(self, error: ServingError) -> None:
        if (lease := self._cancel()) is not None:
            lease.give_back()
        self._on_failed(error)


def _drop_text(text: str, tokens: int | None, *, reasoning: bool = False) -> None:
    """The token of a warm-up is no part of an answer."""
