"""What one prompt asks of the engine's KV cache, and what it was given."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from s2l.serving_adapter.realtime.kv_ledger import Holding


class Kind(Enum):
    """What a chunk is handed out as."""

    SESSION = "session"
    """The next chunk of a session that stays open."""
    PREFIX = "prefix"
    """An ordinary request for one token, which warms the prefix cache."""
    ANSWER = "answer"
    """The last chunk of a session, or an ordinary request: what follows is the answer."""


@dataclass(frozen=True, slots=True)
class Ask:
    """The open request holds the prompt's first ``start`` tokens; ``end`` of them are known.

    ``kept`` of them were handed to past requests, and may be in the prefix cache.
    ``answer_tokens`` is None while context may still come.
    """

    start: int
    end: int
    kept: int
    answer_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Leave:
    """The prompt may hand out its tokens up to ``end``, of which ``tokens`` are new work.

    ``start`` and ``warm_tokens`` say how it stood before, for one that is given back unused.
    """

    kind: Kind
    end: int
    tokens: int
    start: int
    warm_tokens: int


@dataclass(eq=False)
class Claim:
    """One prompt as admission sees it. ``wake`` is called when something changed for it.

    ``leave`` is what it may hand out, or has in the engine; ``open`` is whether it has an engine
    request; ``evicted`` asks it to abort that request; ``cold`` says that what past requests left
    of it is gone; ``urgent`` that it is complete and has no token yet; ``changes`` counts how often
    prefilled context was replaced; ``answer_tokens`` is what the engine has to prefill of it now
    that it is complete; ``moved_s`` is when it last advanced, or began to wait.
    """

    number: int
    wake: Callable[[], None]
    holding: Holding = field(init=False)
    ask: Ask | None = None
    leave: Leave | None = None
    open: bool = False
    urgent: bool = False
    evicted: bool = False
    cold: bool = False
    changes: int = 0
    answer_tokens: int = 0
    moved_s: float = 0.0

    def __post_init__(self) -> None:
        self.holding = Holding(self._chill)

    def _chill(self) -> None:
        self.cold = True
        self.wake()
