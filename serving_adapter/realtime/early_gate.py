"""How much early prefill may be in the engine, so that those who are ready hardly wait for it."""

from collections.abc import Callable
from typing import Final, Protocol

EARLY_S: Final = 0.25
"""Early prefill in flight is no more than the engine does in this time: the longest that a prompt
which becomes complete meanwhile can wait for it."""

URGENT_S: Final = 0.005
"""The same while complete prompts are being prefilled: next to nothing."""

BUSY_S: Final = 0.5
"""With so much to prefill for complete prompts, more of them in the engine would not be faster."""

MIN_TOKENS: Final = 64
"""Less than this is not worth an engine step of its own."""

START_TOKENS_PER_S: Final = 1024.0
LEARNING: Final = 0.3
"""Weight of the newest chunk in what the engine's speed is taken to be."""


class Gate(Protocol):
    """Says how many tokens of early prefill may be handed out now."""

    def room(self, urgent: bool) -> int:
        """Tokens; ``urgent``: complete prompts wait for their first token."""

    def busy(self, tokens: int) -> bool:
        """Whether so many tokens of complete prompts keep the engine busy for a while."""

    def started(self, tokens: int) -> None:
        """So many early tokens were handed out."""

    def ended(self, tokens: int, seconds: float | None) -> None:
        """They are done after so long, or aborted (None)."""


class OpenGate:
    """For engines whose requests do not slow each other down."""

    def room(self, urgent: bool) -> int:
        """No limit."""
        return 1 << 40

    def busy(self, tokens: int) -> bool:
        """Never."""
        return False

    def started(self, tokens: int) -> None:
        """Nothing to note."""

    def ended(self, tokens: int, seconds: float | None) -> None:
        """Nothing to note."""


class EarlyGate:
    """Learns how fast the engine prefills from how long early chunks take.

    ``others_wait_s`` says how long the first of the requests that came to the engine by other doors
    waits for a token (None: there is none): early prefill yields to them too. A chunk that had
    to wait its turn makes the speed seem lower than it is, which errs on the careful side.
    """

    def __init__(self, others_wait_s: Callable[[], float | None] = lambda: None) -> None:
        self._others_wait_s = others_wait_s
        self._in_flight = 0
        self._tokens_per_s = START_TOKENS_PER_S

    def room(self, urgent: bool) -> int:
        """Tokens that may be handed out now; 0 for less than is worth a step."""
        urgent = urgent or self._others_wait_s() is not None
        budget = int(self._tokens_per_s * (URGENT_S if urgent else EARLY_S))
        if not urgent:
            budget = max(budget, MIN_TOKENS)
        room = budget - self._in_flight
        return room if room >= MIN_TOKENS else 0

    def busy(self, tokens: int) -> bool:
        """By the speed as it is known."""
        return tokens >= self._tokens_per_s * BUSY_S

    def started(self, tokens: int) -> None:
        """So many early tokens were handed out."""
        self._in_flight += tokens

    def ended(self, tokens: int, seconds: float | None) -> None:
        """They are done, all that was in flight meanwhile in that time at most."""
        if seconds and tokens >= MIN_TOKENS:
            seen = self._in_flight / seconds
            self._tokens_per_s += LEARNING * (seen - self._tokens_per_s)
        self._in_flight -= tokens
