"""The pages that a site lists in its sitemap, ranked against the question."""

import asyncio
import gzip
import io
import re
import zlib
from collections import deque
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from lxml import etree

from s2l.collectors import failure
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.page import PageFetcher, monotonic_us
from s2l.collectors.searching.base import SearchHit, best_hits, check_address, web_address
from s2l.collectors.searching.ranking import Bm25Index, words_of, words_of_url
from s2l.workloads.query import Query

_MIMES: Final = frozenset(
    f"{family}/{kind}"
    for family, kinds in {
        "text": ("plain", "xml"),
        "application": ("xml", "rss+xml", "gzip", "x-gzip", "octet-stream"),
    }.items()
    for kind in kinds
)
_MOST_URLS: Final = 200_000
_MOST_SITEMAPS: Final = 500
_MOST_BYTES: Final = 50 << 20  # of one sitemap, by the protocol (sitemaps.org)
_ROBOTS_LINE: Final = re.compile(r"(?im)^\s*sitemap\s*:\s*(\S+)")


@dataclass(frozen=True, slots=True)
class _Sitemap:
    """What one file lists: further sitemaps, and pages with their title or ''."""

    sitemaps: tuple[str, ...] = ()
    pages: tuple[tuple[str, str], ...] = ()


class SitemapSearch:
    """Ranks what the sitemap at ``address`` lists, by the words of addresses and titles.

    ``address`` is a sitemap (XML, an index of them, plain text; gzip or not) or a site, whose
    ``robots.txt`` names its sitemaps or which has ``/sitemap.xml``. It is read once, by the first
    search: at most 500 files of it and 200,000 pages, without files that fail. Pages of other hosts
    are left out, as the protocol has it.
    """

    name = "sitemap"

    def __init__(self, fetcher: PageFetcher, address: str) -> None:
        check_address(address, "sitemap", "https://example.org/sitemap.xml")
        self._fetcher = fetcher
        self._address = address
        self._host = urlsplit(address).netloc
        self._reading = asyncio.Lock()
        self._index: Bm25Index | None = None
        self._titles: dict[str, str] = {}

    async def search(self, query: Query, n: int) -> list[SearchHit]:
        """See ``SearchProvider``; a failure to read the sitemap is met anew by each search."""
        async with self._reading:
            if self._index is None:
                self._index = await self._read_all()
        # Up to a second of work, in which no arrival could be stamped here.
        best = await asyncio.to_thread(self._index.best, query.text, n)
        return best_hits((SearchHit(url, self._titles.get(url, "")) for url in best), n)

    async def _read_all(self) -> Bm25Index:
        index = Bm25Index()
        waiting = deque((await self._roots())[:_MOST_SITEMAPS])
        seen = set(waiting)  # all of these are read
        first: Failure | None = None
        while waiting and len(index) < _MOST_URLS:
            try:
                fresh = await self._read(waiting.popleft(), index, seen)
            except Failure as failed:
                first = first or failed
                continue
            seen.update(fresh)
            waiting.extend(fresh)
        if len(index) == 0:
            raise first or Failure(failure.BAD_ANSWER, f"no page of {self._host} in the sitemap")
        return index

    async def _roots(self) -> list[str]:
        """The sitemaps to begin with."""
        if urlsplit(self._address).path not in ("", "/"):
            return [self._address]
        try:
            robots = await self._fetcher.fetch(
                urljoin(self._address, "/robots.txt"), monotonic_us, frozenset({"text/plain"})
            )
            named = _ROBOTS_LINE.findall(robots.body.decode(errors="replace"))
        except Failure:
            named = []  # a site without robots.txt may still have a sitemap
        ours = [url for url in named if self._is_ours(url)]
        return list(dict.fromkeys(ours)) or [urljoin(self._address, "/sitemap.xml")]

    async def _read(self, url: str, index: Bm25Index, seen: Set[str]) -> list[str]:
        """Add the pages that a sitemap lists to ``index``; which further ones are to be read."""
        page = await self._fetcher.fetch(url, monotonic_us, _MIMES)

        def take() -> list[str]:
            found = parse_sitemap(page.body, page.url)
            self._take(found, index)
            fresh = dict.fromkeys(url for url in found.sitemaps if self._is_ours(url))
            return [url for url in fresh if url not in seen][: _MOST_SITEMAPS - len(seen)]

        return await asyncio.to_thread(take)

    def _take(self, found: _Sitemap, index: Bm25Index) -> None:
        for url, title in found.pages:
            if len(index) < _MOST_URLS and self._is_ours(url) and url not in index:
                index.add(url, [*words_of_url(url), *words_of(title)])
                if title:
                    self._titles[url] = title

    def _is_ours(self, url: str) -> bool:
        return web_address(url) is not None and urlsplit(url).netloc == self._host


def parse_sitemap(body: bytes, base: str) -> _Sitemap:
    """Read a sitemap, an index of sitemaps, or a plain list of addresses, compressed or not.

    Raises:
        Failure: it is none, or larger than the protocol allows.
    """
    data = _unpacked(body)
    head = data[:1000].lstrip(b"\xef\xbb\xbf \t\r\n")
    if not head.startswith(b"<"):
        lines = data.decode(errors="replace").split()
        return _Sitemap(pages=tuple((url, "") for url in lines if web_address(url)))
    try:
        return _parse_xml(data, base)
    except etree.XMLSyntaxError as error:
        raise Failure(failure.BAD_ANSWER, f"not a sitemap: {error.msg}") from None


def _parse_xml(data: bytes, base: str) -> _Sitemap:
    sitemaps, pages = [], []
    # No entities and no network: a sitemap is a stranger's file.
    items = etree.iterparse(
        io.BytesIO(data), events=("end",), resolve_entities=False, no_network=True, load_dtd=False
    )
    for _, element in items:
        kind = _local(element)
        if kind not in ("url", "sitemap"):
            continue
        texts = dict(_texts(element))
        url = web_address(texts.get("loc", ""), base) if texts.get("loc") else None
        if url is not None and kind == "sitemap":
            sitemaps.append(url)
        elif url is not None:
            pages.append((url, texts.get("title", "")))
        element.clear()
    return _Sitemap(tuple(sitemaps), tuple(pages))


def _texts(element: Any) -> Iterator[tuple[str, str]]:
    """The texts below an entry by local name, so that ``news:title`` is its title."""
    for part in element.iter():
        if isinstance(part.tag, str) and part.text and part.text.strip():
            yield _local(part), " ".join(part.text.split())


def _local(element: Any) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _unpacked(body: bytes) -> bytes:
    if not body.startswith(b"\x1f\x8b"):
        return body
    try:
        with gzip.open(io.BytesIO(body)) as file:
            data = file.read(_MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise Failure(failure.BAD_ANSWER, f"not a sitemap: {error}") from None
    if len(data) > _MOST_BYTES:
        raise Failure(failure.TOO_LARGE, f"more than {_MOST_BYTES} bytes")
    return data
