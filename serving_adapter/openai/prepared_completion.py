"""A prompt encoded for a chat or completions endpoint."""

from dataclasses import dataclass

from s2l.serving_adapter.base import Listener
from s2l.serving_adapter.openai.completion_session import CompletionSession
from s2l.serving_adapter.openai.connection_pool import ConnectionPool
from s2l.serving_adapter.openai.context_states import ContextStates
from s2l.serving_adapter.openai.request_template import EncodedRequest, Salting


@dataclass(frozen=True, slots=True)
class PreparedCompletion:
    """The requests of one prompt. ``fixed_bytes`` are those of the instructions."""

    pool: ConnectionPool
    states: ContextStates
    answer: EncodedRequest
    warm_up: EncodedRequest
    salting: Salting
    fixed_bytes: int

    def start(self, listener: Listener, *, salt: str) -> CompletionSession:
        """Begin a request; a connection is held for it, or opened, from now on."""
        return CompletionSession(self, listener, self.salting.value(salt))
