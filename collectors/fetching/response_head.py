"""What the head of an answer says, once it is here."""

from collections.abc import Collection
from typing import Final

import aiohttp

from s2l.collectors import failure
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.retry_after import retry_after_s
from s2l.collectors.well_formed import well_formed

_VALIDATORS: Final = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}


def checked_mime(response: aiohttp.ClientResponse, mimes: Collection[str] | None) -> str:
    """The type of an answer that is one of a page.

    Raises:
        Failure: it is none; ``http_...``, ``not_text``.
    """
    if response.status != 200:
        raise Failure(
            failure.http_status(response.status),
            response.reason or "",
            retry_after_s=retry_after_s(response.headers.get("Retry-After")),
        )
    mime = response.content_type.lower()
    if mimes is not None and mime not in mimes:
        raise Failure(failure.NOT_TEXT, mime)
    return mime


def validators(response: aiohttp.ClientResponse) -> dict[str, str]:
    """Headers for a later request that asks whether the page has changed since."""
    found = {asks: response.headers.get(says) for says, asks in _VALIDATORS.items()}
    return {asks: well_formed(value) for asks, value in found.items() if value}
