"""What a search provider is, and what it finds."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urldefrag, urljoin, urlsplit

from s2l.collectors.searching.shown_address import shown_address
from s2l.collectors.well_formed import readable, well_formed
from s2l.workloads.query import Query

_BREAKS: Final = str.maketrans("", "", "\t\r\n")
"""Tabs and line ends mean nothing within an address (WHATWG URL, 4.4)."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One result of a search."""

    url: str
    title: str = ""
    snippet: str = ""


class SearchProvider(Protocol):
    """Finds pages for a question."""

    name: str
    """As in the registry; the trace says it beside the hits."""

    async def search(self, query: Query, n: int) -> list[SearchHit]:
        """At most ``n`` hits, best first.

        Raises:
            Failure: the search did not answer, or not as it is to.
        """
        ...


class SearchError(ValueError):
    """A search that cannot be begun. Its text is one line for the person who asked for it."""


class UnknownSearchProvider(SearchError):
    """No search provider has this name."""


class BadSearchUrl(SearchError):
    """Not an address that this search provider can use."""


class MissingKey(SearchError):
    """The environment has no key for this search provider, or one that cannot be a key."""


def check_address(url: str, what: str, example: str) -> str:
    """``url`` if it is an http or https address without a password in it.

    Raises:
        BadSearchUrl: it is none.
    """
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname)
        named = parts.username is not None or parts.password is not None
    except ValueError:
        fine, named = False, False
    if named:  # the address is recorded in the trace, so it is not said back either
        raise BadSearchUrl(f"{what}: leave the user name and password out of the address")
    if not fine:
        raise BadSearchUrl(
            f"{what} {shown_address(url)!r}: give an http(s) address, such as {example}"
        )
    return url


def best_hits(hits: Iterable[SearchHit], n: int, base: str = "") -> list[SearchHit]:
    """The first ``n`` different web addresses, made absolute, without fragments."""
    found: dict[str, SearchHit] = {}
    for hit in hits:
        url = web_address(hit.url, base)
        if url is not None and url not in found:
            found[url] = SearchHit(url, readable(hit.title).strip(), readable(hit.snippet).strip())
        if len(found) == n:
            break
    return list(found.values())


def web_address(reference: str, base: str = "") -> str | None:
    """The absolute http(s) address that ``reference`` means on page ``base``, or None."""
    try:
        meant = well_formed(reference.strip()).translate(_BREAKS)
        url = urldefrag(urljoin(base, meant)).url
        parts = urlsplit(url)
        return url if parts.scheme in ("http", "https") and parts.hostname else None
    except ValueError:
        return None
