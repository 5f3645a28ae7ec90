"""Search providers by name."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from s2l.collectors.fetching.page import PageFetcher
from s2l.collectors.searching import brave, tavily
from s2l.collectors.searching.api_client import ApiClient
from s2l.collectors.searching.base import (
    BadSearchUrl,
    SearchProvider,
    UnknownSearchProvider,
    check_address,
)
from s2l.collectors.searching.brave import Brave
from s2l.collectors.searching.links import LinkBudget, LinkSearch, check_seeds
from s2l.collectors.searching.listed import ListedUrls
from s2l.collectors.searching.searxng import Searxng
from s2l.collectors.searching.secret import Secret
from s2l.collectors.searching.site import SiteSearch, check_template
from s2l.collectors.searching.sitemap import SitemapSearch
from s2l.collectors.searching.tavily import Tavily


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What a provider may need. ``urls``: its address or template, or the seed pages."""

    urls: tuple[str, ...] = ()
    budget: LinkBudget = field(default_factory=LinkBudget)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    def one_url(self, example: str) -> str:
        """The only address. Raises BadSearchUrl where there is none, or several."""
        if len(self.urls) != 1:
            raise BadSearchUrl(f"search URL: give exactly one, such as {example}")
        return self.urls[0]


@dataclass(frozen=True, slots=True)
class Access:
    """What providers ask through: sites as the crawl does, services with their keys."""

    pages: PageFetcher
    client: ApiClient


MakeProvider = Callable[[Access], SearchProvider]


def _tavily(settings: SearchSettings) -> MakeProvider:
    key = Secret.from_environment(tavily.KEY_NAME, settings.environ)
    endpoint = _endpoint(settings, tavily.ENDPOINT)
    return lambda access: Tavily(access.client, key, endpoint)


def _brave(settings: SearchSettings) -> MakeProvider:
    key = Secret.from_environment(brave.KEY_NAME, settings.environ)
    endpoint = _endpoint(settings, brave.ENDPOINT)
    return lambda access: Brave(access.client, key, endpoint)


def _searxng(settings: SearchSettings) -> MakeProvider:
    example = "http://127.0.0.1:8888"
    address = check_address(settings.one_url(example), "search URL", example)
    return lambda access: Searxng(access.client, address)


def _site(settings: SearchSettings) -> MakeProvider:
    template = check_template(settings.one_url("https://example.org/search?q={query}"))
    return lambda access: SiteSearch(access.pages, template)


def _listed(settings: SearchSettings) -> MakeProvider:
    if settings.urls:
        raise BadSearchUrl("search URL: none is needed, each question brings its own addresses")
    return lambda access: ListedUrls()


def _sitemap(settings: SearchSettings) -> MakeProvider:
    example = "https://example.org/sitemap.xml"
    address = check_address(settings.one_url(example), "sitemap", example)
    return lambda access: SitemapSearch(access.pages, address)


def _links(settings: SearchSettings) -> MakeProvider:
    seeds = check_seeds(settings.urls)
    return lambda access: LinkSearch(access.pages, seeds, settings.budget)


def _endpoint(settings: SearchSettings, default: str) -> str:
    """Another address of the service, such as a proxy's, if one is given."""
    if not settings.urls:
        return default
    return check_address(settings.one_url(default), "search URL", default)


SEARCH_PROVIDERS: Final[dict[str, Callable[[SearchSettings], MakeProvider]]] = {
    "brave": _brave,
    "links": _links,
    "searxng": _searxng,
    "site": _site,
    "sitemap": _sitemap,
    "tavily": _tavily,
    "urls": _listed,
}


def search_provider(name: str, settings: SearchSettings) -> MakeProvider:
    """What makes the provider of that name; all that is given for it is checked now.

    Raises:
        SearchError: there is none, or its address or key is missing or cannot be used.
    """
    try:
        prepare = SEARCH_PROVIDERS[name]
    except KeyError:
        choices = ", ".join(sorted(SEARCH_PROVIDERS))
        raise UnknownSearchProvider(f"search provider {name!r}: choose from {choices}") from None
    return prepare(settings)
