"""What can be asked of a crawl: polite and public by default, every bad value one line."""

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

import click
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from s2l.collecting.crawl_display import describe_progress, eta_s
from s2l.collecting.crawl_options import CrawlOptions
from s2l.collectors.collect import Progress
from s2l.collectors.crawl_settings import CrawlSettings
from s2l.collectors.page_reader import BrowserMode
from s2l.exits import FAILED, USAGE
from s2l.workloads.arrival import ArrivalKind
from s2l.workloads.trace import Trace


def test_the_demo_site_needs_no_manners_and_all_others_do() -> None:
    demo = CrawlOptions().crawl_settings()
    assert demo == CrawlSettings.at_home()
    other = CrawlOptions(search_urls=("https://example.org/?q={query}",)).crawl_settings()
    assert other == CrawlSettings()
    assert (other.allow_private, other.manners.obey_robots) == (False, True)
    assert CrawlOptions(search_urls=("http://x/{query}",), own_site=True).crawl_settings() == demo


def test_given_options_reach_the_settings_and_come_back_from_the_record() -> None:
    options = CrawlOptions(
        search="links",
        search_urls=("http://a/", "http://b/"),
        depth=1,
        pages=9,
        hosts=2,
        contact="me@example.org",
        requests=5,
        per_site=1,
        delay_s=0.25,
        attempts=2,
        timeout_s=9.5,
        max_bytes=1000,
        max_redirects=0,
        browser="auto",
        cache="pages",
        fresh_s=60.0,
        allow_private=True,
    )
    settings, search = options.crawl_settings(), options.search_settings()
    manners, limits = settings.manners, settings.limits
    assert (search.urls, search.budget.depth, search.budget.pages) == (
        ("http://a/", "http://b/"),
        1,
        9,
    )
    assert (manners.concurrency, manners.per_site, manners.delay_s) == (5, 1, 0.25)
    assert (manners.retry.attempts, manners.user_agent) == (2, "s2l-crawl (+me@example.org)")
    assert (limits.total_s, limits.max_bytes, limits.max_redirects) == (9.5, 1000, 0)
    assert (settings.browser, settings.cache) == (BrowserMode.AUTO, Path("pages"))
    written = json.loads(json.dumps(options.recorded()))
    assert CrawlOptions.from_recorded(written, Path("t")) == replace(options, cache="***")
    assert CrawlOptions().recorded() == {
        "search": "site",
        "search_urls": ["demo site"],
        "hits": 7,
        "concurrency": 8,
    }
    with pytest.raises(click.UsageError, match="t: not a crawl that can be resumed"):
        CrawlOptions.from_recorded({"hits": "many"}, Path("t"))


def test_progress_in_words() -> None:
    state = Progress(2, 10, {"timeout": 3, "http_404": 1, "dns": 1, "tls": 1}, texts=50)
    assert describe_progress(state, 10.0, {"a:80": 4}) == (
        "5.0 pages/s · 6 failed (timeout 3, dns 1, http_404 1, …) · waiting for a:80 4"
    )
    assert describe_progress(Progress(0, 1, {}), 0.0, {}) == "0 pages/s"
    assert (eta_s(state, 10.0), eta_s(Progress(0, 1, {}), 5.0)) == (40.0, None)


async def _crawl(folder: Path, *options: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "s2l", "collect", "crawl", *options],
        cwd=folder,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--search", "bing"), "'bing' is not one of 'brave', 'links'"),
        (("--search", "links"), "no seed page"),
        (("--search", "searxng"), "give exactly one, such as"),
        (("--search-url", "example.org"), "give an http(s) address"),
        (("--search-url", "https://example.org/"), "{query} is missing"),
        (("--search", "tavily"), "set the environment variable TAVILY_API_KEY"),
        (("--depth", "2"), "--depth is for links only"),
        (("--search", "urls", "--speed", "3"), "--speed is for the demo site only"),
        (("--fresh-s", "3"), "--fresh-s is for a cache only"),
        (("--contact", "nobody"), "contact 'nobody': give a web or mail address"),
        (("--timeout-s", "0"), "give a number above 0"),
    ],
)
def test_a_bad_value_is_one_line_and_makes_no_folder(  # type: ignore[no-untyped-def]
    here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], says: str
) -> None:
    monkeypatch.delenv("TAVILY_API_KEY", raising=False)
    (tmp_path / "q.jsonl").write_text('{"query": "Why?"}\n')
    result = here("collect", "crawl", "--queries", "q.jsonl", "--out", "trace", *options)
    assert (result.code, result.err.count("\n")) == (USAGE, 1), result.err
    assert says in result.err
    assert not (tmp_path / "trace").exists()


async def test_private_addresses_are_fetched_only_where_they_are_allowed(tmp_path: Path) -> None:
    pages = {
        "/": '<a href="/heap">How a heap sorts</a> <a href="/news">News</a>',
        "/heap": f"<html><body><p>{'A heap sorts by taking the least. ' * 9}</p></body></html>",
    }

    async def serve(request: web.Request) -> web.Response:
        if request.path not in pages:
            raise web.HTTPNotFound
        return web.Response(text=pages[request.path], content_type="text/html")

    app = web.Application()
    app.router.add_get("/{path:.*}", serve)
    (tmp_path / "q.jsonl").write_text('{"query": "How does a heap sort?"}\n')
    async with TestServer(app) as server:
        root = str(server.make_url("/"))
        common = (
            "--queries",
            "q.jsonl",
            "--search",
            "links",
            "--search-url",
            root,
            "--delay-s",
            "0",
        )
        code, said = await _crawl(tmp_path, *common, "--out", "public")
        assert code == FAILED, said
        code, said = await _crawl(tmp_path, *common, "--allow-private", "--out", "private")
        assert code == 0, said
    [refused, _] = Trace.open(tmp_path / "public").arrivals()
    assert (refused.kind, refused.status) == (ArrivalKind.SEARCH, "private_address")
    assert refused.meta == {"provider": "links"}
    search, page, _ = Trace.open(tmp_path / "private").arrivals()
    hit = {"url": f"{root}heap", "title": "How a heap sorts", "snippet": ""}
    assert search.meta == {"provider": "links", "hits": [hit]}
    assert (page.status, page.meta["url"]) == ("ok", f"{root}heap")
    assert Trace.open(tmp_path / "private").manifest.collector.options["search"] == "links"
