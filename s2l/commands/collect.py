"""``s2l collect``"""

import asyncio
from contextlib import AsyncExitStack
from importlib.resources import files
from pathlib import Path

import click

from s2l import __version__
from s2l.collectors.collect import Progress
from s2l.collectors.crawl import collect_crawl
from s2l.collectors.demo_site.process import DemoSite
from s2l.exits import FAILED
from s2l.folders import TRACES, new_folder
from s2l.parameters import POSITIVE
from s2l.progress import bar, say
from s2l.workloads.info import describe
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.questions import read_questions
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter

LICENCE_DEMO = "PSF-2.0"
"""Of Python's documentation, which the demo site serves."""


def shipped_questions() -> Path:
    """The 40 questions about Python's standard library that come with the project."""
    return Path(str(files("s2l.datasets").joinpath("pydocs/queries.jsonl")))


@click.group()
def collect() -> None:
    """Record how context arrives, as a trace dataset."""


@collect.command()
@click.option("--queries", "questions", type=click.Path(path_type=Path), help="JSONL of questions.")
@click.option("-n", "n_queries", type=click.IntRange(1), help="Only the first N questions.")
@click.option(
    "--search-url", help="A site's search, with {query} and {n} in it; default: the demo site."
)
@click.option("--hits", type=click.IntRange(1), default=7, show_default=True)
@click.option("--concurrency", type=click.IntRange(1), default=8, show_default=True)
@click.option("--speed", type=POSITIVE, default=1.0, help="Divides the demo site's latencies.")
@click.option("--seed", type=int, default=0, help="Of the demo site's latencies.")
@click.option("--licence", help="Licence of the text collected; default: that of the demo site.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the trace.")
def crawl(
    questions: Path | None,
    n_queries: int | None,
    search_url: str | None,
    hits: int,
    concurrency: int,
    speed: float,
    seed: int,
    licence: str | None,
    out: Path | None,
) -> int:
    """Search and crawl for every question; without options, the shipped ones on the demo site."""
    chosen = read_questions(questions or shipped_questions())[:n_queries]
    if not chosen:
        raise click.UsageError(f"{questions}: no questions in it")
    path = out or new_folder(TRACES, "crawl")
    licence = licence or ("unknown" if search_url else LICENCE_DEMO)

    async def run() -> None:
        async with AsyncExitStack() as stack:
            url = search_url
            if url is None:
                site = await stack.enter_async_context(DemoSite(speed=speed, seed=seed))
                url = site.search_url
                say(f"demo site: {site.url} (speed {speed:g})")
            options = {"search_url": search_url or "demo site", "speed": speed, "hits": hits}
            options["concurrency"] = concurrency
            await crawl_into(
                path,
                chosen,
                url,
                hits=hits,
                concurrency=concurrency,
                licence=licence,
                collector=Collector("crawl", __version__, options, seed),
            )

    asyncio.run(run())
    return say_what_was_collected(path)


async def crawl_into(
    path: Path,
    queries: list[Query],
    search_url: str,
    *,
    collector: Collector,
    licence: str,
    hits: int = 7,
    concurrency: int = 8,
) -> None:
    """Crawl into a new trace folder and finish it, with progress."""
    with (
        TraceWriter.create(path, name=path.name, collector=collector, licence=licence) as writer,
        bar("crawl", len(queries)) as progress,
    ):

        def on_progress(state: Progress) -> None:
            failed = sum(state.failures.values())
            progress.advance(f"{failed} failed fetches" if failed else "")

        await collect_crawl(
            queries,
            search_url,
            writer,
            hits=hits,
            concurrency=concurrency,
            progress=on_progress,
        )
        writer.finish()


def say_what_was_collected(path: Path) -> int:
    """Say what a new trace holds; the exit code: failure when no text arrived at all."""
    info = describe(Trace.open(path))
    failed = sum(info.failures.values())
    say(
        f"trace: {path}  {info.finished_queries} queries, {info.documents} documents, "
        f"{info.arrivals.get('append', 0)} page arrivals ({failed} failed)"
    )
    if info.gap_median_s is not None and info.duration_median_s is not None:
        say(
            f"median gap between arrivals {info.gap_median_s:.2f} s, "
            f"median retrieval {info.duration_median_s:.1f} s"
        )
    if info.documents == 0:
        say("nothing was fetched; see the failures with: s2l dataset info")
        return FAILED
    return 0
