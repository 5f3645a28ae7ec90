"""Runs a crawl into a trace folder, from the start or from where one was stopped."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from s2l import __version__
from s2l.collecting.crawl_display import crawl_display
from s2l.collecting.crawl_options import CrawlOptions
from s2l.collecting.kept_options import keep_options, kept_options
from s2l.collectors.collect import collect
from s2l.collectors.crawl import Crawl, open_crawl
from s2l.collectors.demo_site.process import DemoSite, DemoSiteError
from s2l.collectors.searching.registry import SearchSettings, search_provider
from s2l.drain import drained_on_interrupt
from s2l.progress import say
from s2l.workloads.manifest import Collector
from s2l.workloads.plural import counted
from s2l.workloads.query import Query
from s2l.workloads.trace_writer import TraceWriter

_COLLECTOR: Final = "crawl"
_TRIES_FOR_PORT: Final = 3


async def crawl_into(
    path: Path, queries: Sequence[Query], options: CrawlOptions, *, licence: str
) -> bool:
    """Crawl into a new trace folder. Whether it was finished: it is not where it was interrupted.

    Raises:
        click.UsageError, SearchError, BrowserUnavailable: an option cannot be followed; the
            folder is not made.
        TraceError: the folder is not empty, or the disk would not take it.
    """
    async with site_up(options) as (options, search_url), open_search(options, search_url) as crawl:
        writer = TraceWriter.create(
            path, name=path.name, collector=crawler(options), licence=licence, queue=queries
        )
        with writer:
            keep_options(path, options)
            return await _capture(writer, crawl, options.concurrency)


def crawler(options: CrawlOptions) -> Collector:
    """What a manifest says of the crawl."""
    return Collector(_COLLECTOR, __version__, options.recorded(), options.seed)


async def crawl_on(path: Path) -> bool:
    """Go on with the interrupted crawl in ``path``, with the options that it was begun with.

    Raises what ``crawl_into`` does, and TraceError where there is nothing to resume.
    """
    with TraceWriter.resume(path) as writer:
        if writer.collector.name != _COLLECTOR:
            raise click.UsageError(f"{path}: was captured by {writer.collector.name}, not by crawl")
        options = replace(kept_options(path, writer.collector), workers=1)
        say(f"resuming {path}: {counted(len(writer.todo), 'query', 'queries')} to do")
        async with site_up(options) as (options, url), open_search(options, url) as crawl:
            return await _capture(writer, crawl, options.concurrency)


@asynccontextmanager
async def site_up(options: CrawlOptions) -> AsyncIterator[tuple[CrawlOptions, str | None]]:
    """The demo site where that is crawled: the options with its port, and its search address.

    Raises:
        click.UsageError, SearchError: an option cannot be followed.
        DemoSiteError: it does not start.
    """
    options.crawl_settings()
    if not options.is_demo:
        search_provider(options.search, options.search_settings())
        yield options, None
        return
    async with AsyncExitStack() as stack:
        site = await _demo_site(stack, options)
        yield replace(options, site_port=int(site.url.rpartition(":")[2])), site.search_url


@asynccontextmanager
async def open_search(
    options: CrawlOptions, demo_search: str | None, *, extract_workers: int | None = None
) -> AsyncIterator[Crawl]:
    """The crawl, ready to begin. Raises what ``site_up`` and ``open_crawl`` do."""
    searched = SearchSettings((demo_search,)) if demo_search else options.search_settings()
    settings = replace(options.crawl_settings(), extract_workers=extract_workers)
    search = search_provider(options.search, searched)
    async with open_crawl(search, settings, hits=options.hits) as crawl:
        yield crawl


async def _demo_site(stack: AsyncExitStack, options: CrawlOptions) -> DemoSite:
    """The demo site: where it was before, if it was; the one of a killed crawl may be there yet."""
    for left in reversed(range(_TRIES_FOR_PORT)):
        try:
            site = await stack.enter_async_context(
                DemoSite(port=options.site_port or 0, speed=options.speed, seed=options.seed)
            )
        except DemoSiteError:
            if left == 0:
                raise
        else:
            break
    say(f"demo site: {site.url} (speed {options.speed:g})")
    return site


async def _capture(writer: TraceWriter, crawl: Crawl, concurrency: int) -> bool:
    queries = writer.todo
    with (
        drained_on_interrupt("queries") as stop,
        crawl_display(len(queries), crawl.waiting) as display,
    ):
        state = await collect(
            queries,
            crawl.collector,
            writer,
            concurrency=concurrency,
            progress=display.update,
            first_offset_us=writer.elapsed_us,
            stop=stop,
        )
    if state.done < state.total:
        return False
    writer.finish()
    return True
