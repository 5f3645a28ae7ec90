"""SearXNG, a metasearch engine that one hosts oneself: https://docs.searxng.org/dev/search_api"""

from typing import Final

import msgspec

from s2l.collectors import failure
from s2l.collectors.failure import Failure
from s2l.collectors.searching.api_client import ApiClient, ApiRequest
from s2l.collectors.searching.base import SearchHit, best_hits
from s2l.workloads.query import Query

_FORBIDDEN: Final = failure.http_status(403)


class _Result(msgspec.Struct):
    url: str | None = None
    title: str | None = None
    content: str | None = None


class _Answer(msgspec.Struct):
    results: list[_Result]


class Searxng:
    """``GET /search?format=json`` of the instance at ``address``, which is trusted: it is ours."""

    name = "searxng"

    def __init__(self, client: ApiClient, address: str) -> None:
        self._client = client
        stem = address.rstrip("/")
        self._endpoint = stem if stem.endswith("/search") else f"{stem}/search"

    async def search(self, query: Query, n: int) -> list[SearchHit]:
        """See ``SearchProvider``."""
        request = ApiRequest(self._endpoint, params={"q": query.text, "format": "json"})
        try:
            found = await self._client.ask(request, _Answer)
        except Failure as failed:
            if failed.status == _FORBIDDEN:
                advice = "this instance gives no JSON: add json to search.formats in settings.yml"
                raise Failure(_FORBIDDEN, advice) from None
            raise
        hits = (SearchHit(r.url or "", r.title or "", r.content or "") for r in found.results)
        return best_hits(hits, n)
