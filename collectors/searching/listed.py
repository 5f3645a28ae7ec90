"""Addresses that come with the question."""

from s2l.collectors.failure import NO_URLS, Failure
from s2l.collectors.searching.base import SearchHit, best_hits
from s2l.workloads.query import Query


class ListedUrls:
    """Takes a question's ``urls`` in their order, as the lines of SimpleQA have them."""

    name = "urls"

    async def search(self, query: Query, n: int) -> list[SearchHit]:
        """See ``SearchProvider``; repeated addresses count once."""
        urls = query.meta.get("urls")
        listed = urls if isinstance(urls, list | tuple) else []
        hits = best_hits((SearchHit(url) for url in listed if isinstance(url, str)), n)
        if not hits:
            raise Failure(
                NO_URLS, 'the question\'s line has no "urls": a list of http(s) addresses'
            )
        return hits
