"""``s2l demo``"""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import click
import msgspec

from s2l.collecting.crawl_capture import crawl_into
from s2l.collecting.crawl_options import CrawlOptions
from s2l.collecting.shipped import LICENCE_DEMO, shipped_questions
from s2l.commands.collect_crawl import say_what_was_collected
from s2l.engine import model_to_serve
from s2l.exits import FAILED, INTERRUPTED
from s2l.folders import RUNS, TRACES, new_folder
from s2l.progress import console, say
from s2l.replayer.options import ReplayOptions
from s2l.replayer.run import Run
from s2l.replaying.request import EMBEDDED_CONTEXT_TOKENS
from s2l.replaying.run import replay_into
from s2l.replaying.target import server_at
from s2l.reports.headline import headline
from s2l.reports.html import write_html
from s2l.reports.summary import Summary, summarize
from s2l.reports.terminal import print_summary
from s2l.workloads.query import Query
from s2l.workloads.questions import read_questions
from s2l.workloads.trace import Trace

REPORT: Final = Path("report.html")
ANN_PASSAGES: Final = 5
"""Passages of 100 tokens in a context: about what the embedded model is given of a crawl."""

RATES: Final = {"crawl": 1.0, "ann": 1.2}
"""Of ``--qps``: a search is over sooner than a crawl, so that more of them fit into the time."""


@click.command()
@click.option(
    "-n", "n_queries", type=click.IntRange(1), default=10, show_default=True, help="Questions."
)
@click.option(
    "--qps",
    type=click.FloatRange(0.01, 5),
    default=0.3,
    show_default=True,
    help="Queries per second of the replays.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Of the demo site's latencies, the index and the schedules.",
)
@click.option("--json", "as_json", is_flag=True, help="The figures as JSON on standard output.")
def demo(n_queries: int, qps: float, seed: int, as_json: bool) -> int:
    """The whole job on this machine, with no network: crawl, search, replay, report."""
    model_to_serve(None)
    queries = read_questions(shipped_questions())[:n_queries]
    traces = asyncio.run(_collect(queries, seed))
    if traces is None:
        return INTERRUPTED
    options = ReplayOptions(
        rate_qps=qps, seed=seed, max_tokens=32, context_tokens=EMBEDDED_CONTEXT_TOKENS
    )
    runs = asyncio.run(_replay(traces, options, qps))
    return _conclude(runs, as_json=as_json)


async def _collect(queries: list[Query], seed: int) -> dict[str, Path] | None:
    """The traces by kind; None when it was interrupted."""
    say(
        "1/3  Crawling. A real website (Python's documentation) runs on this machine behind the "
        "latencies of a published web crawl; for each question we search it, fetch what it finds, "
        "and record when each page's text was ready."
    )
    path = new_folder(TRACES, "crawl")
    if not await crawl_into(path, queries, CrawlOptions(seed=seed), licence=LICENCE_DEMO):
        return None
    say_what_was_collected(path)
    say(
        "     Searching. What was crawled is split, embedded and indexed; for each question the "
        "index is searched list by list, and every change of the best passages is recorded, at "
        "the pace of a published search."
    )
    searched = new_folder(TRACES, "ann")
    await _collect_ann(path, searched, n_queries=len(queries), seed=seed)
    return {"crawl": path, "ann": searched}


async def _collect_ann(corpus: Path, path: Path, *, n_queries: int, seed: int) -> None:
    """In a process of its own: the one that will measure the server does not carry PyTorch."""
    command = ["collect", "ann", corpus, "--out", path, "-n", n_queries, "--seed", seed]
    options = ["-k", ANN_PASSAGES, "--gaps", "stream2llm-anns"]
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "s2l", *map(str, [*command, *options])
    )
    try:
        code = await child.wait()
    except asyncio.CancelledError:
        child.terminate()
        await child.wait()
        raise
    if code:
        raise click.ClickException("collecting from the vector search failed; see above")


async def _replay(traces: dict[str, Path], options: ReplayOptions, qps: float) -> dict[str, Path]:
    """The runs by kind of trace; fewer than the traces when it was interrupted."""
    say(
        "2/3  Starting stock vLLM with a small model on this machine's CPU, then replaying what "
        "was recorded twice: once waiting for all of it, once sending each piece as it arrived."
    )
    runs = {}
    async with server_at(None) as url:
        for kind, trace in traces.items():
            path = runs[kind] = new_folder(RUNS, f"replay-{kind}")
            rated = replace(options, rate_qps=qps * RATES[kind])
            info = await replay_into(path, Trace.open(trace), rated, url, embedded=True)
            if info.interrupted:
                break
    return runs


def _conclude(paths: dict[str, Path], *, as_json: bool) -> int:
    say("3/3  The result. TTFT is the time from the retrieval's end to the first token.")
    runs = {kind: Run.open(path) for kind, path in paths.items()}
    summaries = {kind: summarize(run) for kind, run in runs.items()}
    report = next(iter(paths.values())) / REPORT
    write_html(list(runs.values()), report)
    for summary in summaries.values():
        print_summary(summary, console)
    if as_json:
        click.echo(msgspec.json.encode(summaries))
    say("Try next: s2l replay --qps 20   ·   s2l dataset info   ·   s2l report")
    for kind, summary in summaries.items():
        say(f"{kind}: {headline(summary)}")
    say(f"report: {report}")
    return _exit_code(summaries)


def _exit_code(summaries: dict[str, Summary]) -> int:
    if any(summary.info.interrupted for summary in summaries.values()):
        return INTERRUPTED
    return FAILED if any(s.info.counts.succeeded == 0 for s in summaries.values()) else 0
