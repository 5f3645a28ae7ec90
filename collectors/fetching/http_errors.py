"""The HTTP client's errors as failures with a code."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import aiohttp

from s2l.collectors import failure
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.content_coding import CodingError


@contextmanager
def named_failures() -> Iterator[None]:
    """Turn the errors of a request into failures with a code."""
    try:
        yield
    except (TimeoutError, aiohttp.ClientError, UnicodeError, CodingError) as error:
        raise Failure(_status(error), error_words(error)) from error


def error_words(error: Exception) -> str:
    """What an error says in a line, without the address: there may be a key in that."""
    said = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    return said.partition("\n")[0] or type(error).__name__


def _status(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientResponseError):
        return failure.HEADER_TOO_LARGE if _is_of_size(error) else failure.BROKEN
    for kinds, status in _STATUSES:
        if isinstance(error, kinds):
            return status
    return failure.BROKEN


def _is_of_size(error: aiohttp.ClientResponseError) -> bool:
    # The client's compiled parser tells the kinds apart by their words only.
    return error.message.startswith(("Got more than", "Too many headers"))


# In this order: several of these are subclasses of later ones.
_STATUSES: Final[tuple[tuple[type[Exception], str], ...]] = (
    (TimeoutError, failure.CONNECT_TIMEOUT),  # the system's, on connecting
    (aiohttp.ClientConnectorDNSError, failure.DNS),
    (aiohttp.ClientSSLError, failure.TLS),
    (aiohttp.ClientConnectorError, failure.CONNECT),
    (aiohttp.InvalidURL, failure.BAD_URL),
    (aiohttp.NonHttpUrlClientError, failure.BAD_SCHEME),
    (aiohttp.ClientError, failure.BROKEN),
    (CodingError, failure.BROKEN),
    (UnicodeError, failure.BAD_URL),  # a host name that no host can have
)
