"""``s2l collect crawl``"""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from s2l.collecting.crawl import crawl_with
from s2l.collecting.crawl_capture import crawl_into, crawl_on
from s2l.collecting.crawl_options import DEMO, CrawlOptions
from s2l.collecting.run import Outcome
from s2l.collecting.shipped import LICENCE_DEMO, shipped_questions
from s2l.collectors.failure import PRIVATE_ADDRESS
from s2l.collectors.page_reader import BrowserMode
from s2l.collectors.searching.registry import SEARCH_PROVIDERS
from s2l.exits import FAILED, INTERRUPTED
from s2l.folders import TRACES, new_folder
from s2l.parameters import POSITIVE
from s2l.progress import say
from s2l.scale import Scale, scale_options
from s2l.workloads.info import describe
from s2l.workloads.manifest import MANIFEST
from s2l.workloads.plural import counted
from s2l.workloads.questions import read_questions
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import recover

_PATH: Final = click.Path(path_type=Path)
_COUNT: Final = click.IntRange(1)
_NUMBER: Final = click.FloatRange(0)


@click.command(short_help="Search and crawl; each page is an arrival.")
@click.option("--queries", "questions", type=_PATH, help="JSONL of questions.")
@click.option("-n", "n_queries", type=_COUNT, help="Only the first N questions.")
@click.option(
    "--search",
    type=click.Choice(sorted(SEARCH_PROVIDERS)),
    default="site",
    show_default=True,
    help="How pages are found. tavily and brave take their key from TAVILY_API_KEY and "
    "BRAVE_API_KEY; searxng, a sitemap and links start at --search-url; urls takes each "
    'question\'s own "urls".',
)
@click.option(
    "--search-url",
    "search_urls",
    multiple=True,
    help="A site's search, with {query} and {n} in it; a SearXNG; a sitemap or its site; seed "
    "pages of links (may be repeated). Default: the demo site.",
)
@click.option("--depth", type=click.IntRange(0), help="Of links: from a seed to a hit. [2]")
@click.option("--pages", type=_COUNT, help="Of links: pages read for one question. [30]")
@click.option("--hosts", type=_COUNT, help="Of links: different hosts. [1]")
@click.option("--hits", type=_COUNT, default=7, show_default=True, help="Pages fetched a question.")
@click.option("--concurrency", type=_COUNT, default=8, show_default=True, help="Questions at once.")
@click.option("--contact", help="Web or mail address that sites are told, and the trace's readers.")
@click.option("--requests", type=_COUNT, help="Requests at once, in all. [64]")
@click.option("--per-site", type=_COUNT, help="Requests at once at one site. [2]")
@click.option("--delay-s", type=_NUMBER, help="Between the starts of requests at a site. [0.5]")
@click.option("--attempts", type=_COUNT, help="Of each request, where a retry may help. [3]")
@click.option("--timeout-s", type=POSITIVE, help="Of one fetch, in all. [60]")
@click.option("--max-bytes", type=_COUNT, help="Of one page, decompressed. [10000000]")
@click.option("--max-redirects", type=click.IntRange(0), help="Of one fetch. [5]")
@click.option(
    "--browser",
    type=click.Choice([mode.value for mode in BrowserMode]),
    default="never",
    show_default=True,
    help="Open pages in Chromium: those that need it, all, none.",
)
@click.option("--no-sandbox", is_flag=True, help="Let Chromium run without its sandbox.")
@click.option("--cache", type=_PATH, help="Folder of pages not to be asked for again.")
@click.option("--fresh-s", type=_NUMBER, help="Ask for cached pages again when older. [never]")
@click.option("--allow-private", is_flag=True, help="Fetch from private addresses too.")
@click.option(
    "--own-site",
    is_flag=True,
    help="The sites are your own: private addresses, no robots.txt, no waiting.",
)
@click.option("--speed", type=POSITIVE, default=1.0, help="Divides the demo site's latencies.")
@click.option("--seed", type=int, default=0, help="Of the demo site's latencies.")
@scale_options
@click.option("--licence", help="Licence of the text collected; default: that of the demo site.")
@click.option("--out", type=_PATH, help="Folder of the trace.")
@click.option(
    "--resume", type=_PATH, help="Go on with an interrupted crawl; takes no other option."
)
@click.pass_context
def crawl(
    context: click.Context,
    /,
    questions: Path | None,
    n_queries: int | None,
    licence: str | None,
    out: Path | None,
    resume: Path | None,
    cache: Path | None,
    search: str,
    search_urls: tuple[str, ...],
    workers: int,
    ray_address: str | None,
    **given: Any,
) -> int:
    """Search and crawl for every question; without options, the shipped ones on the demo site."""
    if resume is not None:
        _check_alone(context, "resume")
        return _resume(resume)
    urls = search_urls or ((DEMO,) if search == "site" else ())
    options = CrawlOptions(
        search=search, search_urls=urls, cache=str(cache) if cache else None, **given
    )
    _check_fit(context, options)
    chosen = read_questions(questions or shipped_questions())[:n_queries]
    path = out or new_folder(TRACES, "crawl")
    licence = licence or (LICENCE_DEMO if options.is_demo else "unknown")
    scale = Scale(workers, ray_address)
    if scale.is_one:
        return _run(path, crawl_into(path, chosen, options, licence=licence))
    return _run(path, _scaled(path, crawl_with(scale, path, chosen, options, licence=licence)))


def _check_alone(context: click.Context, name: str) -> None:
    """The options of a crawl that is resumed are its own."""
    for parameter in context.command.params:
        given = context.get_parameter_source(str(parameter.name)) is not ParameterSource.DEFAULT
        if given and parameter.name != name:
            option = max(parameter.opts, key=len)
            raise click.UsageError(f"leave out {option}: --{name} takes the options of that crawl")


def _check_fit(context: click.Context, options: CrawlOptions) -> None:
    """Refuse options that would change nothing."""
    of_other = {
        "links": (options.search != "links", ("depth", "pages", "hosts")),
        "the demo site": (not options.is_demo, ("speed", "seed")),
        "a cache": (options.cache is None, ("fresh_s",)),
    }
    for what, (is_other, names) in of_other.items():
        for name in names if is_other else ():
            if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
                raise click.UsageError(f"--{name.replace('_', '-')} is for {what} only")


def _resume(path: Path) -> int:
    if (path / MANIFEST).is_file():
        recover(path)  # it may have been killed after its last page and before its last step
        say(f"{path}: was finished")
        return say_what_was_collected(path)
    return _run(path, crawl_on(path))


def _run(path: Path, crawling: Coroutine[Any, Any, bool]) -> int:
    """Crawl, and say what came of it; the exit code."""
    try:
        finished = asyncio.run(crawling)
    except asyncio.CancelledError:
        finished = False
    if finished:
        return say_what_was_collected(path)
    say(f"interrupted; go on with: s2l collect crawl --resume {path}")
    return INTERRUPTED


async def _scaled(path: Path, crawling: Coroutine[Any, Any, Outcome]) -> bool:
    """Whether it was finished. Raises click.ClickException where a worker was lost."""
    outcome = await crawling
    outcome.check(f"s2l collect crawl --resume {path}")
    return outcome.finished


def say_what_was_collected(path: Path) -> int:
    """Say what a new trace holds; the exit code: failure when no text arrived at all."""
    info = describe(Trace.open(path))
    failed = sum(info.failures.values())
    say(
        f"trace: {path}  {counted(info.finished_queries, 'query', 'queries')}, "
        f"{counted(info.documents, 'document')}, "
        f"{counted(info.arrivals.get('append', 0), 'page arrival')} ({failed} failed)"
    )
    if info.gap_median_s is not None and info.duration_median_s is not None:
        say(
            f"median gap between arrivals {info.gap_median_s:.2f} s, "
            f"median retrieval {info.duration_median_s:.1f} s"
        )
    if PRIVATE_ADDRESS in info.failures:
        say("private addresses are fetched from with --allow-private or --own-site")
    if info.documents == 0:
        say("nothing was fetched; see the failures with: s2l dataset info")
        return FAILED
    return 0
