"""Brave's web search: https://api-dashboard.search.brave.com/documentation"""

from typing import Final

import msgspec

from s2l.collectors.searching.api_client import ApiClient, ApiRequest
from s2l.collectors.searching.base import SearchHit, best_hits
from s2l.collectors.searching.secret import Secret
from s2l.workloads.query import Query

KEY_NAME: Final = "BRAVE_API_KEY"
ENDPOINT: Final = "https://api.search.brave.com/res/v1/web/search"
_MOST_HITS: Final = 20
_MOST_CHARS: Final = 400
_MOST_WORDS: Final = 50


class _Result(msgspec.Struct):
    url: str
    title: str | None = None
    description: str | None = None


class _Web(msgspec.Struct):
    results: list[_Result] = []


class _Answer(msgspec.Struct):
    web: _Web | None = None
    """Left out when nothing was found."""


class Brave:
    """``GET /web/search`` with the key in ``X-Subscription-Token``; at most 20 hits a question.

    Brave takes 400 characters and 50 words; of a longer question it gets the beginning.
    """

    name = "brave"

    def __init__(self, client: ApiClient, key: Secret, endpoint: str = ENDPOINT) -> None:
        self._client = client
        self._key = key
        self._endpoint = endpoint

    async def search(self, query: Query, n: int) -> list[SearchHit]:
        """See ``SearchProvider``."""
        words = " ".join(query.text.split()[:_MOST_WORDS])[:_MOST_CHARS]
        request = ApiRequest(
            self._endpoint,
            params={
                "q": words,
                "count": str(min(n, _MOST_HITS)),
                "result_filter": "web",
                "text_decorations": "false",
            },
            key=self._key,
            key_header="X-Subscription-Token",
            key_format="{}",
        )
        found = await self._client.ask(request, _Answer)
        results = (found.web or _Web()).results
        hits = (SearchHit(r.url, r.title or "", r.description or "") for r in results)
        return self._key.redact_hits(best_hits(hits, n))
