"""A site's own search."""

import asyncio
from typing import Annotated, Final
from urllib.parse import quote_plus, urlsplit

import msgspec

from s2l.collectors import failure
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.page import HTML_MIMES, Fetched, PageFetcher, monotonic_us
from s2l.collectors.searching.base import BadSearchUrl, SearchHit, best_hits, check_address
from s2l.collectors.searching.page_links import Link, page_links
from s2l.collectors.searching.shown_address import shown_address
from s2l.workloads.query import Query

_JSON: Final = frozenset({"application/json"})
_EXAMPLE: Final = "http://127.0.0.1:8080/search?q={query}&n={n}"


def check_template(template: str) -> str:
    """``template`` if it is an address with ``{query}`` in it.

    Raises:
        BadSearchUrl: it is none.
    """
    check_address(template, "search URL", _EXAMPLE)
    if "{query}" not in template:
        shown = shown_address(template)
        raise BadSearchUrl(f"search URL {shown!r}: {{query}} is missing, as in {_EXAMPLE}")
    return template


class _Hit(msgspec.Struct):
    url: Annotated[str, msgspec.Meta(min_length=1)]
    title: str = ""
    snippet: str = ""


class _Answer(msgspec.Struct):
    hits: list[_Hit]


class SiteSearch:
    """Asks ``template``, the search's address with ``{query}`` and, if it takes one, ``{n}`` in it.

    The answer is JSON, ``{"hits": [{"url", "title", "snippet"}]}``, or a page of results: its
    links in order, without those of menus, headers, footers and forms and those without words.
    """

    name = "site"

    def __init__(self, fetcher: PageFetcher, template: str) -> None:
        self._fetcher = fetcher
        self._template = check_template(template)

    async def search(self, query: Query, n: int) -> list[SearchHit]:
        """See ``SearchProvider``."""
        asked = self._template.replace("{query}", quote_plus(query.text)).replace("{n}", str(n))
        found = await self._fetcher.fetch(asked, monotonic_us, _JSON | HTML_MIMES)
        hits = _hits_of_json if found.mime in _JSON else _hits_of_page
        return await asyncio.to_thread(hits, found, n)


def _hits_of_json(found: Fetched, n: int) -> list[SearchHit]:
    try:
        answer = msgspec.json.decode(found.body, type=_Answer)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Failure(failure.BAD_ANSWER, str(error)) from error
    return best_hits(
        (SearchHit(hit.url, hit.title, hit.snippet) for hit in answer.hits), n, found.url
    )


def _hits_of_page(found: Fetched, n: int) -> list[SearchHit]:
    page = page_links(found.body, found.charset, found.url)
    results = (link for link in page.links if _is_result(link, found.url))
    return best_hits((SearchHit(link.url, link.words) for link in results), n)


def _is_result(link: Link, page_url: str) -> bool:
    """Whether a link leads to a result, and not to another page of the search itself."""
    there, here = urlsplit(link.url), urlsplit(page_url)
    is_search = (there.netloc, there.path) == (here.netloc, here.path)
    return bool(link.words) and not link.framed and not is_search
