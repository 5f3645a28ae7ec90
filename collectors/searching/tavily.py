"""Tavily's search for agents: https://docs.tavily.com"""

from typing import Final

import msgspec

from s2l.collectors.searching.api_client import ApiClient, ApiRequest
from s2l.collectors.searching.base import SearchHit, best_hits
from s2l.collectors.searching.secret import Secret
from s2l.workloads.query import Query

KEY_NAME: Final = "TAVILY_API_KEY"
ENDPOINT: Final = "https://api.tavily.com/search"
_MOST_HITS: Final = 20


class _Result(msgspec.Struct):
    url: str
    title: str | None = None
    content: str | None = None


class _Answer(msgspec.Struct):
    results: list[_Result]


class Tavily:
    """``POST /search`` with the key as a bearer token; at most 20 hits a question."""

    name = "tavily"

    def __init__(self, client: ApiClient, key: Secret, endpoint: str = ENDPOINT) -> None:
        self._client = client
        self._key = key
        self._endpoint = endpoint

    async def search(self, query: Query, n: int) -> list[SearchHit]:
        """See ``SearchProvider``; the snippet is Tavily's extract of the page."""
        request = ApiRequest(
            self._endpoint,
            body={"query": query.text, "max_results": min(n, _MOST_HITS)},
            key=self._key,
        )
        found = await self._client.ask(request, _Answer)
        hits = (SearchHit(r.url, r.title or "", r.content or "") for r in found.results)
        return self._key.redact_hits(best_hits(hits, n))
