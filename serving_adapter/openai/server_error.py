"""What a server says went wrong, as one of the error types of ServingError."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, Final

import msgspec

from s2l.serving_adapter.base import ServingError
from s2l.serving_adapter.openai.connection import Headers

MAX_TEXT: Final = 500


def http_error(status: int, headers: Headers, body: bytes) -> ServingError:
    """The error that a response of another status than 2xx is."""
    text = f"HTTP {status}: {_message(body) or 'no reason given'}"
    if status < 400:
        to = headers.get(b"location", b"elsewhere").decode(errors="replace")
        return ServingError("protocol", f"HTTP {status}: redirected to {to}; name that address")
    return ServingError(_type_of(status), text, retry_after_s=retry_after_s(headers))


def error_object(error: Any, *, started: bool) -> ServingError:
    """The error that stands in an event or a body of status 200.

    Once text has come it is the server's failure whatever it says; before, a code of the 400s in
    it means that the request was refused.
    """
    code = error.get("code") if isinstance(error, dict) else None
    known = isinstance(code, int) and 400 <= code < 600 and not started
    text = _text_of(error) or "an error without a message"
    return ServingError(_type_of(code) if known and code else "server_error", text)


def retry_after_s(headers: Headers) -> float | None:
    """Seconds that the server asks to wait: a number or a date (RFC 9110, 10.2.3)."""
    if (milliseconds := _number(headers.get(b"retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get(b"retry-after", b"")
    if (seconds := _number(value)) is not None:
        return seconds
    try:
        at = parsedate_to_datetime(value.decode("ascii", "replace"))
    except (ValueError, OverflowError):
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())


def _type_of(status: int) -> str:
    if status == 429:
        return "rate_limited"
    return "rejected" if status < 500 else "server_error"


def _number(value: bytes | None) -> float | None:
    try:
        number = float(value or b"")
    except ValueError:
        return None
    return max(0.0, number) if isfinite(number) else None


def _message(body: bytes) -> str:
    try:
        return _text_of(msgspec.json.decode(body))
    except (msgspec.DecodeError, RecursionError):
        return _short(body.decode(errors="replace"))


def _text_of(error: Any) -> str:
    """The message in ``{"error": {"message": …}}``, ``{"error": …}``, ``{"message": …}`` and
    ``{"detail": …}``, or all of it."""
    for key in ("error", "error", "message", "detail"):
        if isinstance(error, dict) and error.get(key):
            error = error[key]
    return _short(error if isinstance(error, str) else msgspec.json.encode(error).decode())


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT else f"{line[:MAX_TEXT]}…"
