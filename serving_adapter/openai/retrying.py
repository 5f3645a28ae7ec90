"""Whether and when a failed attempt is made again."""

from dataclasses import dataclass
from typing import Final

from s2l.serving_adapter.base import ServingError

FIRST_DELAY_S: Final = 0.25
LONGEST_DELAY_S: Final = 8.0

PASSING: Final = frozenset(
    ("refused", "connect", "connect_timeout", "disconnected", "rate_limited", "server_error")
)
"""Failures that another attempt may not meet."""


@dataclass(slots=True)
class Retrying:
    """The attempts that one request has left."""

    left: int
    made: int = 0

    def delay_s(self, error: ServingError) -> float | None:
        """Seconds to wait before the next attempt; None: there is none.

        As long as the server asks, else 0.25 s, doubled with each attempt up to 8 s.
        """
        if not self.left or error.error_type not in PASSING:
            return None
        self.left -= 1
        self.made += 1
        if error.retry_after_s is not None:
            return error.retry_after_s
        return float(min(FIRST_DELAY_S * 2 ** (self.made - 1), LONGEST_DELAY_S))
