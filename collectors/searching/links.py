"""Follows links from seed pages towards what the question asks for."""

import asyncio
import heapq
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from s2l.collectors import failure
from s2l.collectors.failure import Failure
from s2l.collectors.fetching.page import HTML_MIMES, PageFetcher, monotonic_us
from s2l.collectors.searching.base import (
    SearchError,
    SearchHit,
    best_hits,
    check_address,
    web_address,
)
from s2l.collectors.searching.page_links import PageLinks, page_links
from s2l.collectors.searching.ranking import Bm25Index, words_of, words_of_url
from s2l.workloads.query import Query

_AT_ONCE: Final = 8
_MOST_LINKS_KEPT: Final = 300_000
_MOST_LINKS_SEEN: Final = 50_000


@dataclass(frozen=True, slots=True)
class LinkBudget:
    """What one question may cost: pages read, different hosts, links from a seed to a hit.

    Depth 0 finds the seeds alone, depth 1 what they link to as well.
    """

    depth: int = 2
    pages: int = 30
    hosts: int = 1

    def __post_init__(self) -> None:
        for name, least in (("depth", 0), ("pages", 1), ("hosts", 1)):
            if getattr(self, name) < least:
                raise SearchError(f"{name} is {getattr(self, name)}: give {least} or more")


def check_seeds(seeds: Sequence[str]) -> list[str]:
    """The seed pages, each once, without fragments.

    Raises:
        SearchError: there is none, or one is no address.
    """
    if not seeds:
        raise SearchError("no seed page: give one or more http(s) addresses to start from")
    for seed in seeds:
        check_address(seed, "seed page", "https://example.org/docs/")
    return list(dict.fromkeys(web_address(seed) or seed for seed in seeds))


class LinkSearch:
    """Reads the page that promises most, again and again, within a budget.

    A page is known by its address, by the words of the links to it and, once read, by its title;
    all pages seen so far are ranked by these against the question. The hits are the best of those
    seen, read or not; the collector then fetches them. What was read is remembered for later
    questions, and counts towards their budget as if it had been read anew: so equal sites give
    equal hits. A failure that may pass is met anew by each question.
    """

    name = "links"

    def __init__(
        self, fetcher: PageFetcher, seeds: Sequence[str], budget: LinkBudget | None = None
    ) -> None:
        self._seeds = check_seeds(seeds)
        self._budget = budget or LinkBudget()
        self._pages = _Pages(fetcher)

    async def search(self, query: Query, n: int) -> list[SearchHit]:
        """See ``SearchProvider``.

        Raises:
            Failure: no seed could be read; that of the first.
        """
        walk = _Walk(query.text, self._seeds, self._budget)
        # Thousands of links are ranked at each step: not here, where arrivals are stamped.
        while urls := await asyncio.to_thread(walk.next_pages):
            read = await asyncio.gather(*(self._pages.get(url) for url in urls))
            await asyncio.to_thread(walk.take, dict(zip(urls, read, strict=True)))
        if walk.failure is not None and walk.failed_seeds == len(self._seeds):
            raise walk.failure.copy()
        return await asyncio.to_thread(walk.hits, n)


class _Walk:
    """One question's way through the pages: pure, it is told what was read."""

    def __init__(self, question: str, seeds: Sequence[str], budget: LinkBudget) -> None:
        self._question = question
        self._left = budget.pages
        self._budget = budget
        self._index = Bm25Index()
        self._titles: dict[str, str] = {}
        self._waiting: dict[str, int] = {}  # not read yet: links away from a seed
        self._depths: dict[str, int] = {}
        self._dead: set[str] = set()
        self._hosts: set[str] = set()
        self.failed_seeds = 0
        self.failure: Failure | None = None
        for seed in seeds:
            self._see(seed, "", 0)

    def next_pages(self) -> list[str]:
        """The most promising pages to read now; none at the end."""
        scores = self._index.scores(self._question)

        def promise(url: str) -> tuple[float, int]:
            return -scores.get(url, 0.0), self._waiting[url]

        seeds = [url for url, depth in self._waiting.items() if depth == 0]
        promising = [url for url in self._waiting if scores.get(url)]
        most = min(_AT_ONCE, self._left)
        chosen = seeds[:most] or heapq.nsmallest(most, promising or self._waiting, key=promise)
        for url in chosen:
            del self._waiting[url]
        self._left -= len(chosen)
        return chosen

    def take(self, read: Mapping[str, PageLinks | Failure]) -> None:
        """Take note of what pages were, by their address."""
        for url, page in read.items():
            self._take(url, page)

    def _take(self, url: str, page: PageLinks | Failure) -> None:
        depth = self._depths[url]
        if isinstance(page, Failure):
            self.failure = self.failure or page
            self.failed_seeds += depth == 0
            if page.status != failure.NOT_TEXT:  # a PDF has no links, and may be worth fetching
                self._dead.add(url)
            return
        self._titles[url] = page.title or self._titles.get(url, "")
        self._index.add(url, words_of(page.title))
        for link in page.links if depth < self._budget.depth else ():
            self._see(link.url, link.words, depth + 1)

    def _see(self, url: str, words: str, depth: int) -> None:
        if url not in self._depths:
            host = urlsplit(url).netloc
            full = host not in self._hosts and len(self._hosts) >= self._budget.hosts
            if depth > 0 and (full or len(self._depths) >= _MOST_LINKS_SEEN):
                return
            self._hosts.add(host)
            self._depths[url] = depth
            if depth < max(1, self._budget.depth):  # those further away lead on to nothing
                self._waiting[url] = depth
            self._index.add(url, words_of_url(url))
        self._titles.setdefault(url, words)
        self._index.add(url, words_of(words))

    def hits(self, n: int) -> list[SearchHit]:
        """The best pages seen, those left out that could not be read."""
        best = self._index.best(self._question, n + len(self._dead))
        alive = (url for url in best if url not in self._dead)
        return best_hits((SearchHit(url, self._titles.get(url, "")) for url in alive), n)


@dataclass(frozen=True, slots=True)
class _Known:
    """What a page was at a moment."""

    page: PageLinks | Failure
    read_us: int

    def answers(self, asked_us: int) -> bool:
        """Whether that is known for who asked then: what may pass, only for who waited for it."""
        passing = isinstance(self.page, Failure) and not self.page.lasts
        return not passing or asked_us < self.read_us


class _Pages:
    """Reads each page once; forgets those not asked for longest when there are too many links."""

    def __init__(self, fetcher: PageFetcher) -> None:
        self._fetcher = fetcher
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._links = 0
        self._reading: dict[str, asyncio.Lock] = {}

    async def get(self, url: str) -> PageLinks | Failure:
        """The page, or why there is none."""
        asked_us = monotonic_us()
        async with self._reading.setdefault(url, asyncio.Lock()):
            known = self._known.get(url)
            if known is None or not known.answers(asked_us):
                known = self._keep(url, await self._read(url))
        self._reading.pop(url, None)
        self._known.move_to_end(url)
        return known.page

    async def _read(self, url: str) -> PageLinks | Failure:
        try:
            found = await self._fetcher.fetch(url, monotonic_us, HTML_MIMES)
        except Failure as failed:
            return failed
        return await asyncio.to_thread(page_links, found.body, found.charset, found.url)

    def _keep(self, url: str, page: PageLinks | Failure) -> _Known:
        if (before := self._known.pop(url, None)) is not None:
            self._links -= _size(before.page)
        known = self._known[url] = _Known(page, monotonic_us())
        self._links += _size(page)
        while self._links > _MOST_LINKS_KEPT and len(self._known) > 1:
            _, forgotten = self._known.popitem(last=False)
            self._links -= _size(forgotten.page)
        return known


def _size(page: PageLinks | Failure) -> int:
    return 1 + (len(page.links) if isinstance(page, PageLinks) else 0)
