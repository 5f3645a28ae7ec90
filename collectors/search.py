"""Where the addresses to crawl come from."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final, Protocol
from urllib.parse import quote_plus, urljoin, urlsplit

import msgspec

from s2l.collectors import failure
from s2l.collectors.failure import Failure
from s2l.collectors.fetch import PageFetcher

_JSON: Final = frozenset({"application/json"})


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One result of a search."""

    url: str
    title: str
    snippet: str


class SearchProvider(Protocol):
    """Finds pages for a question."""

    async def search(self, question: str, n: int) -> list[SearchHit]:
        """At most ``n`` hits, best first.

        Raises:
            Failure: the search did not answer, or not as it is to.
        """
        ...


class UnknownSearchProvider(ValueError):
    """No search provider has this name."""


class BadSearchUrl(ValueError):
    """Not a template of a search address."""


class _Hit(msgspec.Struct):
    url: Annotated[str, msgspec.Meta(min_length=1)]
    title: str = ""
    snippet: str = ""


class _Answer(msgspec.Struct):
    hits: list[_Hit]


class SiteSearch:
    """A JSON endpoint that answers ``{"hits": [{"url", "title", "snippet"}]}``.

    ``template`` is its address with ``{query}`` and, if it takes one, ``{n}`` in it.
    """

    def __init__(self, fetcher: PageFetcher, template: str) -> None:
        if urlsplit(template).scheme not in ("http", "https") or "{query}" not in template:
            raise BadSearchUrl(
                f"search URL {template!r}: give an http(s) address with {{query}} in it, "
                "such as http://127.0.0.1:8080/search?q={query}&n={n}"
            )
        self._fetcher = fetcher
        self._template = template

    async def search(self, question: str, n: int) -> list[SearchHit]:
        """Ask the endpoint; relative addresses are resolved, repeated ones left out."""
        url = self._template.replace("{query}", quote_plus(question)).replace("{n}", str(n))
        found = await self._fetcher.fetch(url, time.monotonic_ns, _JSON)
        try:
            answer = msgspec.json.decode(found.body, type=_Answer)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Failure(failure.BAD_ANSWER, str(error)) from error
        hits: dict[str, SearchHit] = {}
        for hit in answer.hits:
            address = urljoin(url, hit.url)
            hits.setdefault(address, SearchHit(address, hit.title, hit.snippet))
        return list(hits.values())[:n]


SEARCH_PROVIDERS: Final[dict[str, Callable[[PageFetcher, str], SearchProvider]]] = {
    "site": SiteSearch,
}
"""Search providers by name: a function of a fetcher and the search URL."""


def search_provider(name: str, fetcher: PageFetcher, search_url: str) -> SearchProvider:
    """The provider of that name.

    Raises:
        UnknownSearchProvider: there is none; the message lists them.
        BadSearchUrl: the URL is not one for it.
    """
    try:
        make = SEARCH_PROVIDERS[name]
    except KeyError:
        choices = ", ".join(sorted(SEARCH_PROVIDERS))
        raise UnknownSearchProvider(f"search provider {name!r}: choose from {choices}") from None
    return make(fetcher, search_url)
