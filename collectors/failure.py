"""Why a part of a retrieval failed; it becomes a row of the trace."""

from collections.abc import Mapping
from typing import Any, Final, Self

from s2l.collectors.well_formed import one_line

EMPTY: Final = "empty"
NOT_TEXT: Final = "not_text"
TOO_LARGE: Final = "too_large"
HEADER_TOO_LARGE: Final = "header_too_large"
TIMEOUT: Final = "timeout"
CONNECT_TIMEOUT: Final = "connect_timeout"
FIRST_BYTE_TIMEOUT: Final = "first_byte_timeout"
IDLE_TIMEOUT: Final = "idle_timeout"
DNS: Final = "dns"
TLS: Final = "tls"
CONNECT: Final = "connect"
BROKEN: Final = "broken"
BAD_URL: Final = "bad_url"
BAD_SCHEME: Final = "bad_scheme"
PRIVATE_ADDRESS: Final = "private_address"
BAD_ANSWER: Final = "bad_answer"
NO_URLS: Final = "no_urls"
TOO_MANY_REDIRECTS: Final = "too_many_redirects"
ROBOTS_DISALLOWED: Final = "robots_disallowed"
ROBOTS_UNREACHABLE: Final = "robots_unreachable"
RETRY_LATER: Final = "retry_later"
EXTRACT_TIMEOUT: Final = "extract_timeout"
EXTRACT_MEMORY: Final = "extract_memory"
EXTRACT_FAILED: Final = "extract_failed"
BROWSER_FAILED: Final = "browser_failed"
BROWSER_TIMEOUT: Final = "browser_timeout"

CODES: Final[Mapping[str, str]] = {
    EMPTY: "there is no text in the page",
    NOT_TEXT: "the answer's type is none that text is extracted from",
    TOO_LARGE: "the body, before or after decompression, is beyond the limit",
    HEADER_TOO_LARGE: "a header line, or their number, is beyond the limit",
    TIMEOUT: "all of the fetch took longer than the limit",
    CONNECT_TIMEOUT: "no connection, name lookup included, within the limit",
    FIRST_BYTE_TIMEOUT: "no complete headers within the limit",
    IDLE_TIMEOUT: "nothing more of the body came within the limit",
    DNS: "the host's name is not known",
    TLS: "no secure connection could be agreed on",
    CONNECT: "the host refused the connection, or there is no way to it",
    BROKEN: "the answer was cut short, or is not valid HTTP",
    BAD_URL: "not an address that can be fetched",
    BAD_SCHEME: "an address, also one redirected to, that is neither http nor https",
    PRIVATE_ADDRESS: "the host is not on the public internet, and private ones are not allowed",
    BAD_ANSWER: "the search's answer is not what it is to be",
    NO_URLS: "the question brings no addresses where it is to bring its own",
    TOO_MANY_REDIRECTS: "redirected more often than the limit, or in a circle",
    ROBOTS_DISALLOWED: "the site's robots.txt disallows it",
    ROBOTS_UNREACHABLE: "robots.txt was answered with a server error, so nothing may be fetched",
    RETRY_LATER: "the site has asked to be left alone for longer than a crawl waits",
    EXTRACT_TIMEOUT: "finding the text took longer than the limit",
    EXTRACT_MEMORY: "finding the text took more memory than the limit",
    EXTRACT_FAILED: "the page cannot be parsed",
    BROWSER_FAILED: "the browser could not show the page",
    BROWSER_TIMEOUT: "the browser took longer than the limit",
}
"""What each code means. Besides these there is ``http_`` with any status other than 200."""

_LASTING: Final = frozenset(
    {NOT_TEXT, TOO_LARGE, HEADER_TOO_LARGE, BAD_URL, BAD_SCHEME, PRIVATE_ADDRESS}
    | {TOO_MANY_REDIRECTS, ROBOTS_DISALLOWED}
)
_LATER: Final = frozenset({"http_408", "http_425", "http_429"})
"""The answers 4xx that speak of this request alone: ask again."""

_MOST_WORDS: Final = 200


def http_status(code: int) -> str:
    """The failure code of an HTTP status, such as ``http_503``."""
    return f"http_{code}"


class Failure(Exception):
    """A search, fetch or extraction that failed: a code for the row and a few words beside it.

    ``detail`` is one line without control characters, whatever a server sent. ``retry_after_s``
    is how long the server asks to be left alone; ``final`` says that asking again soon is no use.
    ``meta`` is what is known of the attempt, for the row. ``url`` is the address that failed,
    where redirects may have led to it.
    """

    def __init__(
        self,
        status: str,
        detail: str,
        *,
        retry_after_s: float | None = None,
        final: bool = False,
        meta: Mapping[str, Any] | None = None,
        url: str | None = None,
    ) -> None:
        self.status = status
        self.detail = one_line(detail, _MOST_WORDS)
        self.retry_after_s = retry_after_s
        self.final = final
        self.meta: Mapping[str, Any] = meta or {}
        self.url = url
        super().__init__(f"{status}: {self.detail}")

    @property
    def lasts(self) -> bool:
        """Whether the same request would fail in the same way for the rest of a capture."""
        refused = self.status.startswith("http_4") and self.status not in _LATER
        return refused or self.status in _LASTING

    def copy(self) -> Self:
        """The same failure, to be raised once more: an exception keeps where it was raised."""
        return type(self)(
            self.status,
            self.detail,
            retry_after_s=self.retry_after_s,
            final=self.final,
            meta=dict(self.meta),
            url=self.url,
        )
