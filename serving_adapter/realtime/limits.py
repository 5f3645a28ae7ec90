"""What one client may take of a Realtime server, and who of them is connected."""

import hashlib
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from s2l.serving_adapter.realtime.metrics import LIMITS
from s2l.serving_adapter.realtime.session_config import RealtimeError

PREFIX: Final = "S2L_"

POLICY_VIOLATION: Final = 1008


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of sessions; each is read from a variable of its name in capitals, after ``S2L_``:
    ``S2L_MAX_MESSAGE_BYTES=1000000``. Beyond the first four an event is refused, beyond the fifth
    a session (HTTP 429, before its socket is accepted), and the last four end the session with a
    close code and a reason. The length of a context is bounded by the model alone.
    """

    max_message_bytes: int = 4 * 2**20
    """One client event, in bytes of UTF-8. vLLM's own limit, 16 MiB, closes the socket."""
    max_items: int = 2048
    """Items of a session's conversation, and of the ``input`` of one response."""
    max_responses: int = 16
    """Responses of a session that are under way at once, out-of-band ones among them."""
    max_queued_changes: int = 4096
    """Items created, deleted or rewritten by ``session.update`` that the engine has not taken."""
    max_sessions_per_key: int = 2048
    """Open sessions of one API key; of one client address where the server asks for no key."""
    max_idle_s: float = 600.0
    """Seconds in which the client sends nothing and no response is under way."""
    max_session_s: float = 3600.0
    """Seconds from the first event to the last."""
    max_unsent_bytes: int = 32 * 2**20
    """Events that wait for a client that does not read, in bytes. More than twice a message: an
    item is told twice."""
    max_send_s: float = 30.0
    """Seconds that one event may wait for a client that does not read."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "Limits":
        """The defaults, with what the environment says.

        Raises:
            ValueError: a variable is no positive number; names it.
        """
        source = os.environ if environment is None else environment
        given = {field.name: source.get(PREFIX + field.name.upper()) for field in fields(cls)}
        kinds = {field.name: type(field.default) for field in fields(cls)}
        numbers = {n: _number(n, text, kinds[n]) for n, text in given.items() if text is not None}
        return cls(**numbers)  # type: ignore[arg-type]


def _number(name: str, text: str, kind: type) -> int | float:
    try:
        number: int | float = kind(text)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        what = "a positive integer" if kind is int else "a positive number of seconds"
        raise ValueError(f"{PREFIX}{name.upper()}={text!r} is not {what}")
    return number


@dataclass(frozen=True, slots=True)
class Ending:
    """How a session's socket is to be closed; ``limit`` is the one that ended it, if any did."""

    code: int = 1000
    reason: str = ""
    limit: str | None = None


def exceeded(limit: str, code: str, message: str, *, param: str | None = None) -> RealtimeError:
    """The refusal of one event by a limit, which is counted."""
    hit(limit)
    return RealtimeError(code, f"{message} ({limit})", param=param)


def hit(limit: str) -> None:
    """Count that a limit refused something."""
    LIMITS.labels(limit).inc()


class OpenSessions:
    """Counts the sessions of each key, so that none has more than its share."""

    def __init__(self, max_per_key: int) -> None:
        self._max_per_key = max_per_key
        self._open: Counter[str] = Counter()

    def enter(self, key: str) -> bool:
        """Whether the key may have one more session; if so it is counted until ``leave``."""
        if self._open[key] >= self._max_per_key:
            hit("max_sessions_per_key")
            return False
        self._open[key] += 1
        return True

    def leave(self, key: str) -> None:
        """A session of the key is over."""
        self._open[key] -= 1
        if not self._open[key]:
            del self._open[key]

    @property
    def total(self) -> int:
        """Open sessions of all keys."""
        return self._open.total()


def key_of(authorization: str | None, address: str) -> str:
    """Name of a client for counting: a digest of its API key, its address for None, which is for
    servers that ask for no key: whatever is sent to these proves nothing."""
    if authorization is None:
        return f"address {address}"
    return hashlib.sha256(authorization.partition(" ")[2].encode()).hexdigest()
