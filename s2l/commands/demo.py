"""``s2l demo``"""

import asyncio
from pathlib import Path

import click

from s2l.commands.collect import LICENCE_DEMO, say_what_was_collected, shipped_questions
from s2l.commands.replay import EMBEDDED_CONTEXT_TOKENS, conclude, replay_into
from s2l.commands.serve import model_to_serve
from s2l.crawl_capture import crawl_into
from s2l.crawl_options import CrawlOptions
from s2l.folders import RUNS, TRACES, new_folder
from s2l.progress import say
from s2l.replayer.options import ReplayOptions
from s2l.replayer.run import RunInfo
from s2l.workloads.questions import read_questions
from s2l.workloads.trace import Trace


@click.command()
@click.option("-n", "n_queries", type=click.IntRange(1), default=16, show_default=True)
@click.option("--qps", type=click.FloatRange(0.01, 5), default=0.25, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The figures as JSON on standard output.")
def demo(n_queries: int, qps: float, seed: int, as_json: bool) -> int:
    """The whole job on this machine, with no network: crawl, replay both deliveries, report."""
    model_to_serve(None)
    trace_path = asyncio.run(_crawl(n_queries, seed))
    options = ReplayOptions(
        rate_qps=qps, seed=seed, max_tokens=32, context_tokens=EMBEDDED_CONTEXT_TOKENS
    )
    path = new_folder(RUNS, "replay")
    info = asyncio.run(_replay(path, trace_path, options))
    code = conclude(path, info, strict=False, as_json=as_json)
    say("Try next: s2l replay --qps 20   ·   s2l dataset info   ·   s2l report")
    return code


async def _crawl(n_queries: int, seed: int) -> Path:
    say(
        "1/3  Crawling. A real website (Python's documentation) runs on this machine behind the "
        "latencies of a published web crawl; for each question we search it, fetch what it finds, "
        "and record when each page's text was ready."
    )
    path = new_folder(TRACES, "crawl")
    queries = read_questions(shipped_questions())[:n_queries]
    if not await crawl_into(path, queries, CrawlOptions(seed=seed), licence=LICENCE_DEMO):
        raise KeyboardInterrupt
    say_what_was_collected(path)
    return path


async def _replay(path: Path, trace: Path, options: ReplayOptions) -> RunInfo:
    say(
        "2/3  Starting stock vLLM with a small model on this machine's CPU, then replaying the "
        "crawl twice: once waiting for all pages, once sending each page as it arrived."
    )
    info = await replay_into(path, Trace.open(trace), options, None)
    say("3/3  The result. TTFT is the time from the last page's arrival to the first token.")
    return info
