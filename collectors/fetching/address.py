"""The addresses that may be fetched."""

from typing import Final
from urllib.parse import urlsplit

from yarl import URL

from s2l.collectors import failure
from s2l.collectors.failure import Failure

_SCHEMES: Final = ("http", "https")


def fetchable(url: str, base: URL | None = None) -> URL:
    """``url``, taken relative to ``base``, without its fragment, as an http or https address.

    Raises:
        Failure: ``bad_scheme`` or ``bad_url``.
    """
    scheme = _scheme(url)
    if scheme not in _SCHEMES and not (base is not None and scheme == ""):
        raise Failure(failure.BAD_SCHEME, f"{scheme or 'no scheme'}: only http and https")
    try:
        parsed = URL(url) if scheme or base is None else base.join(URL(url))
        if not parsed.host:
            raise ValueError("no host in it")
        return parsed.with_fragment(None)
    except (ValueError, UnicodeError) as error:
        raise Failure(failure.BAD_URL, str(error)) from error


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme.lower()
    except ValueError as error:
        raise Failure(failure.BAD_URL, str(error)) from error
