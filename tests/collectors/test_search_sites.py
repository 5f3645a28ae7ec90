"""Search without a search service: a site's own, lists of addresses, sitemaps, links."""

import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from s2l.collectors.failure import Failure
from s2l.collectors.fetching.fetcher import Fetcher
from s2l.collectors.searching.base import SearchError, SearchHit, best_hits
from s2l.collectors.searching.links import LinkBudget, LinkSearch
from s2l.collectors.searching.listed import ListedUrls
from s2l.collectors.searching.page_links import MOST_LINKS, page_links
from s2l.collectors.searching.ranking import Bm25Index, words_of, words_of_url
from s2l.collectors.searching.site import SiteSearch
from s2l.collectors.searching.sitemap import SitemapSearch, parse_sitemap
from s2l.workloads.query import Query
from s2l.workloads.questions import read_questions

sys.path.insert(0, str(Path(__file__).parent))
from private_fetcher import private_fetcher
from search_services import FETCHED, pages

RESULTS = """<html><head><title>Results</title></head><body>
<header><a href="/about">About</a></header><nav><a href="/menu">Menu</a></nav>
<form><a href="/advanced">Advanced</a></form>
<main><a href="/a.html">Heap <b>sort</b></a> <a href="b.html#x">Queue</a>
<a href="/a.html">again</a> <a href="/find?q=x&page=2">Next</a> <a href="mailto:x@y">mail</a>
<a href="/pic"><img src="x"></a> <a href="javascript:go()">go</a> <a href="http://[bad">bad</a>
<a rel="nofollow" href="/ad">Ad</a></main></body></html>"""

HITS = (
    b'{"hits": [{"url": "a.html", "title": "A", "snippet": "s"}, {"url": "/b"}, {"url": "a.html"}]}'
)


async def test_a_sites_search_in_json_or_as_a_page_of_results() -> None:
    files: dict[str, Any] = {
        "/json": ("application/json", HITS),
        "/bad": ("application/json", b'{"hits": [{}]}'),
        "/find": RESULTS,
        "/picture": ("image/png", b"x"),
    }
    async with TestServer(pages(files)) as site, private_fetcher() as fetcher:
        root = str(site.make_url("/"))
        search = SiteSearch(fetcher, f"{root}json?q={{query}}&n={{n}}")
        hits = [SearchHit(f"{root}a.html", "A", "s"), SearchHit(f"{root}b")]
        assert await search.search(Query("q", "a&b?"), 7) == hits
        assert await search.search(Query("q", "a"), 1) == hits[:1]
        search = SiteSearch(fetcher, f"{root}find?q={{query}}")
        assert await search.search(Query("q", "heap"), 7) == [
            SearchHit(f"{root}a.html", "Heap sort"),
            SearchHit(f"{root}b.html", "Queue"),
        ]
        for path, status in (("bad", "bad_answer"), ("picture", "not_text"), ("no", "http_404")):
            with pytest.raises(Failure) as failed:
                await SiteSearch(fetcher, f"{root}{path}?{{query}}").search(Query("q", "x"), 7)
            assert failed.value.status == status


async def test_addresses_that_come_with_the_question(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(
        '{"query_id": "s-0", "text": "Who?", "answers": ["M"], "topic": "t", "urls": '
        '["https://a.example/x", "https://b.example/", "https://a.example/x#part"]}\n'
        '{"query_id": "s-1", "text": "None?"}\n'
    )
    with_urls, without = read_questions(file)
    search = ListedUrls()
    assert [hit.url for hit in await search.search(with_urls, 7)] == [
        "https://a.example/x",
        "https://b.example/",
    ]
    assert len(await search.search(with_urls, 1)) == 1
    with pytest.raises(Failure, match="no_urls"):
        await search.search(without, 7)


def _sitemap(root: str, *paths: str, titles: dict[str, str] | None = None) -> tuple[str, str]:
    news = "http://www.google.com/schemas/sitemap-news/0.9"
    entries = "".join(
        f"<url><loc> {path if '://' in path else root + path} </loc>"
        f"<n:news><n:title>{(titles or {}).get(path, '')}</n:title></n:news></url>"
        for path in paths
    )
    kind = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return (
        "application/xml",
        f'<?xml version="1.0"?><urlset xmlns="{kind}" xmlns:n="{news}">{entries}</urlset>',
    )


async def test_a_sitemap_and_its_index_are_ranked_against_the_question() -> None:
    files: dict[str, Any] = {}
    async with TestServer(pages(files)) as site, private_fetcher() as fetcher:
        root = str(site.make_url("/"))
        index = "<sitemapindex>" + "".join(
            f"<sitemap><loc>{url}</loc></sitemap>"
            for url in (
                root + "one.xml",
                root + "two.xml.gz",
                root + "gone.xml",
                "http://x.example/",
            )
        )
        files["/robots.txt"] = ("text/plain", f"User-agent: *\nSitemap: {root}maps/index.xml\n")
        files["/maps/index.xml"] = ("text/xml", index + "</sitemapindex>")
        files["/one.xml"] = _sitemap(
            root, "library/heapq.html", "library/queueModule.html", "the/about"
        )
        files["/two.xml.gz"] = (
            "application/gzip",
            _sitemap(root, "p/17", "http://other.example/heap", titles={"p/17": "Sorting heaps"})[
                1
            ],
        )
        search = SitemapSearch(fetcher, root)
        heap = await search.search(Query("q", "What is the heap sorting of heapq?"), 7)
        assert heap == [
            SearchHit(f"{root}p/17", "Sorting heaps"),
            SearchHit(f"{root}library/heapq.html"),
        ]
        queue = await search.search(Query("q", "queues"), 7)
        assert [hit.url for hit in queue] == [f"{root}library/queueModule.html"]
        assert await search.search(Query("q", "nothing like it"), 7) == []
        fetched = site.app[FETCHED]
        assert len(fetched) == len(set(fetched)) == 5
        with pytest.raises(Failure, match="http_404"):
            await SitemapSearch(fetcher, f"{root}gone.xml").search(Query("q", "x"), 7)
        files["/sitemap.txt"] = ("text/plain", f"{root}heap\nnot an address\n")
        plain = SitemapSearch(fetcher, f"{root}sitemap.txt")
        assert [hit.url for hit in await plain.search(Query("q", "heap"), 7)] == [f"{root}heap"]


def test_a_hostile_sitemap_is_refused() -> None:
    bomb = (
        b'<!DOCTYPE a [<!ENTITY b "bbbbbbbb">]><urlset><url><loc>http://h/&b;</loc></url></urlset>'
    )
    assert "bbbbbbbb" not in str(parse_sitemap(bomb, "http://h/"))
    for body in (b"<urlset><url>", b"\x1f\x8bnot gzip", b"<"):
        with pytest.raises(Failure, match="bad_answer"):
            parse_sitemap(body, "http://h/")
    assert parse_sitemap(b"", "http://h/").pages == ()


def _linked(*links: tuple[str, str], title: str = "", head: str = "") -> str:
    anchors = "".join(f'<a href="{url}">{words}</a>' for url, words in links)
    return f"<html><head><title>{title}</title>{head}</head><body>{anchors}</body></html>"


SITE: dict[str, Any] = {
    "/": _linked(
        ("/tools", "Tools"), ("/sort", "How to sort"), ("/news", "News"), ("/gone", "sort")
    ),
    "/sort": _linked(
        ("/deep/heap", "heaps"), ("/deep/sort.pdf", "sort, on paper"), title="Sorting"
    ),
    "/tools": _linked(("/deep/tool", "A tool")),
    "/news": _linked(
        ("/deep/news", "More"), head='<meta name="robots" content="noindex, nofollow">'
    ),
    "/deep/heap": _linked(("/deeper/sort", "sort even more"), title="How a heap sorts"),
    "/deep/sort.pdf": ("application/pdf", b"%PDF"),
}


async def test_links_are_followed_towards_the_question_within_the_budget() -> None:
    async with TestServer(pages(SITE)) as site, private_fetcher() as fetcher:
        root = str(site.make_url("/"))
        search = LinkSearch(fetcher, [root], LinkBudget(depth=2, pages=5))
        hits = await search.search(Query("q", "How does a heap sort?"), 7)
        assert hits == [
            SearchHit(f"{root}deep/heap", "heaps"),
            SearchHit(f"{root}sort", "Sorting"),
            SearchHit(f"{root}deep/sort.pdf", "sort, on paper"),
        ]
        first = list(site.app[FETCHED])
        assert len(first) == 5
        assert set(first) == {"/", "/sort", "/gone", "/tools", "/news"}
        assert await search.search(Query("q", "How does a heap sort?"), 7) == hits
        assert site.app[FETCHED] == first  # remembered
        question = Query("q", "news and a tool")
        for depth, found in ((0, []), (1, ["news", "tools"]), (2, ["news", "tools", "deep/tool"])):
            search = LinkSearch(fetcher, [root], LinkBudget(depth=depth, pages=5))
            hits = await search.search(question, 7)
            assert [hit.url.removeprefix(root) for hit in hits] == found


async def test_other_hosts_are_followed_as_far_as_the_budget_goes() -> None:
    async with TestServer(pages({"/b/sort": "<p>"})) as b, TestServer(pages({})) as c:
        files = {
            "/": _linked((f"{b.make_url('/b/sort')}", "sort"), (f"{c.make_url('/sort')}", "s"))
        }
        async with TestServer(pages(files)) as a, private_fetcher() as fetcher:
            seed = str(a.make_url("/"))
            for hosts, found in ((1, []), (2, [str(b.make_url("/b/sort"))])):
                search = LinkSearch(fetcher, [seed], LinkBudget(hosts=hosts))
                assert [h.url for h in await search.search(Query("q", "sort"), 7)] == found


async def test_seeds_that_cannot_be_read_are_a_failure() -> None:
    async with TestServer(pages(SITE)) as site, private_fetcher() as fetcher:
        root = str(site.make_url("/"))
        with pytest.raises(Failure, match="http_404"):
            await LinkSearch(fetcher, [f"{root}gone"]).search(Query("q", "sort"), 7)
        one = LinkSearch(fetcher, [f"{root}gone", f"{root}sort"])
        assert await one.search(Query("q", "heap"), 1)


def test_a_budget_must_allow_something() -> None:
    for budget in ({"depth": -1}, {"pages": 0}, {"hosts": 0}):
        with pytest.raises(SearchError, match="or more"):
            LinkBudget(**budget)
    assert isinstance(SearchError("x"), ValueError)
    with pytest.raises(SearchError, match="no seed page"):
        LinkSearch(Fetcher(), [])


def test_a_page_of_many_links_gives_its_first() -> None:
    body = "".join(f'<a href="/{n}">{n}</a>' for n in range(100_000)).encode()
    found = page_links(body, "utf-8", "http://h/")
    assert len(found.links) == MOST_LINKS
    assert found.links[0].url == "http://h/0"


def test_what_leads_on_is_read_as_a_browser_does() -> None:
    head = '<base href="/dir/"><title> A\n title </title>'
    body = f'{head}<a href="x">w</a><a href="?q">query</a><a>none</a>'.encode()
    found = page_links(body, "no-such-charset", "http://h/page")
    assert found.title == "A title"
    assert [link.url for link in found.links] == ["http://h/dir/x", "http://h/dir/?q"]
    for empty in (b"", b"\x00", b"<!-- -->"):
        assert page_links(empty, None, "http://h/").links == ()


def test_bm25_is_the_published_formula() -> None:
    index = Bm25Index()
    index.add("a", ["heap", "sort"])
    index.add("b", ["heap", "heap", "queue", "list"])
    index.add("b", ["set", "dict"])
    # N 3, mean length 3: ln(1 + (3 - 2 + 0.5) / (2 + 0.5)) * tf * 2.2 / (tf + norm)
    index.add("c", ["tree"])
    scores = index.scores("heaps?")
    assert scores == pytest.approx(
        {"a": 0.4700036 * 2.2 / (1 + 0.9), "b": 0.4700036 * 4.4 / (2 + 2.1)}
    )
    assert index.best("heap", 5) == ["a", "b"]
    assert index.best("nothing", 5) == []


def test_words() -> None:
    assert words_of("What is the Use of heaps_sorted, 70 classes?") == [
        *("use", "heap", "sorted", "70", "classe")
    ]
    assert words_of_url("https://docs.example/3/library/heapQueue.html?id=caf%C3%A9") == [
        *("3", "library", "heap", "queue", "id", "café")
    ]


def test_hits_are_web_addresses_and_each_comes_once() -> None:
    given = ["b", "b#x", "\n./\tb ", "file:///etc/passwd", "javascript:x", "http://[", "//c/d"]
    hits = best_hits(map(SearchHit, given), 9, "http://a/")
    assert [hit.url for hit in hits] == ["http://a/b", "http://c/d"]
