"""How long each phase of a request may take, and how often it is tried."""

from dataclasses import dataclass
from typing import Final

RETRIED: Final = frozenset(
    {"refused", "connect", "connect_timeout", "rate_limited", "disconnected", "server_error"}
)
"""Failures after which the same request may well succeed."""
BACKOFF_S: Final = 0.5
"""Before the first retry where the server does not say; doubled with each one after it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of each request.

    ``timeout_s`` counts from when the context is due, ``connect_timeout_s`` from the first piece
    that waits for the connection, ``first_token_timeout_s`` from when the question was sent.
    """

    timeout_s: float = 300.0
    connect_timeout_s: float | None = None
    first_token_timeout_s: float | None = None
    retries: int = 0

    def backoff_s(self, attempt: int, retry_after_s: float | None) -> float:
        """Seconds to wait after that many failed attempts."""
        return BACKOFF_S * 2 ** (attempt - 1) if retry_after_s is None else retry_after_s
