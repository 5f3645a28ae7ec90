"""The Retry-After header (RFC 9110, 10.2.3)."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def retry_after_s(value: str | None, now: datetime | None = None) -> float | None:
    """Seconds to wait, from a number of seconds or an HTTP date; None where it says neither.

    A date without a zone is in UTC, as all HTTP dates are.
    """
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        then = parsedate_to_datetime(value)
    except ValueError:
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, (then - (now or datetime.now(UTC))).total_seconds())
