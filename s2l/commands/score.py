"""``s2l score``"""

import asyncio
import os
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click
import pyarrow as pa
import pyarrow.compute as pc
from platformdirs import user_cache_path

from s2l.progress import bar, say
from s2l.replayer.run import Run
from s2l.reports.judge import Case
from s2l.reports.judge_cache import JudgeCache
from s2l.reports.judge_client import JudgeFailed, JudgeOptions, grade
from s2l.reports.request_metrics import light_requests
from s2l.reports.scores import JUDGE, SIMILARITY, ScoreSource, write_scores
from s2l.reports.similarity import similarity_scores
from s2l.reports.summary import references_of
from s2l.runs import RUN, newest_run
from s2l.workloads.plural import counted

JUDGE_KEY: Final = "S2L_JUDGE_API_KEY"


@click.command()
@click.argument("run", required=False, type=RUN)
@click.option("--similarity", is_flag=True, help="Cosine of sentence embeddings to the references.")
@click.option("--similarity-model", help="A local folder or a hub name; else the packaged MiniLM.")
@click.option("--judge", "judge_url", help="Address of an OpenAI-compatible server that grades.")
@click.option("--judge-model", help="The model's name at that server.")
@click.option("--concurrency", type=click.IntRange(1, 256), default=8, show_default=True)
@click.option("--cache", type=click.Path(path_type=Path), help="Where replies of judges are kept.")
def score(
    run: Path | None,
    similarity: bool,
    similarity_model: str | None,
    judge_url: str | None,
    judge_model: str | None,
    concurrency: int,
    cache: Path | None,
) -> None:
    """Grade the answers of RUN (without one, of the newest) and put the scores beside it.

    Reports and comparisons show them from then on. A judge is asked at temperature 0, its key is
    read from S2L_JUDGE_API_KEY and written nowhere, and nothing is asked twice.
    """
    if not similarity and not judge_url:
        raise click.UsageError("nothing to do; give --similarity, --judge URL, or both")
    if bool(judge_url) != bool(judge_model):
        raise click.UsageError("--judge and --judge-model belong together")
    if judge_url:
        _check_url(judge_url)
    opened = Run.open(run or newest_run())
    if similarity:
        _similarity(opened, similarity_model)
    if judge_url and judge_model:
        options = JudgeOptions(
            judge_url, judge_model, os.environ.get(JUDGE_KEY) or None, concurrency
        )
        _judge(opened, options, JudgeCache(cache or user_cache_path("s2l") / "judge"))


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise click.UsageError(
            f"--judge: {url!r} is no address of a server; write it as http://127.0.0.1:8000, "
            f"with a key in {JUDGE_KEY}"
        )


def _similarity(run: Run, model: str | None) -> None:
    from s2l.collectors.ann.embedder import SentenceEmbedder
    from s2l.collectors.ann.model_source import PACKAGED

    requests, references = light_requests(run), references_of(run.queries())
    say("embedding answers and references")
    embedder = SentenceEmbedder.open(model or PACKAGED)
    scores = similarity_scores(requests, references, embedder.embed)
    write_scores(run, SIMILARITY, scores, ScoreSource(model=embedder.name, requests=len(scores)))
    known = [one.value for one in scores if one.value is not None]
    mean = f", mean {sum(known) / len(known):.3f}" if known else ""
    say(f"{SIMILARITY}: {len(known):,} of {counted(len(scores), 'answer')} scored{mean}")


def _judge(run: Run, options: JudgeOptions, cache: JudgeCache) -> None:
    cases = judge_cases(light_requests(run), run.queries())
    if not cases:
        raise click.ClickException(f"{run.path}: its queries have no reference answers")
    try:
        with bar("judging", len(cases)) as shown:
            graded = asyncio.run(grade(cases, options, cache, shown.advance))
    except JudgeFailed as error:
        raise click.ClickException(f"judge {error}") from None
    write_scores(run, JUDGE, graded.scores, graded.source)
    labels = [one.label or "no grade" for one in graded.scores]
    counts = ", ".join(f"{labels.count(name):,} {name}" for name in sorted(set(labels)))
    source = graded.source
    say(f"{JUDGE}: {counts}")
    say(
        f"cost: {_tokens(source.prompt_tokens)} prompt and {_tokens(source.completion_tokens)} "
        f"completion tokens; of {counted(source.requests, 'reply', 'replies')}, "
        f"{source.cached_requests:,} had been paid for before"
    )


def _tokens(n: int | None) -> str:
    return "an unknown number of" if n is None else f"{n:,}"


def judge_cases(requests: pa.Table, queries: pa.Table) -> list[Case]:
    """The successes whose query has reference answers."""
    texts = dict(zip(*(queries[n].to_pylist() for n in ("query_id", "text")), strict=True))
    references = references_of(queries)
    done = requests.filter(pc.is_null(requests["error_type"]))
    rows = done.select(["request_id", "query_id", "output_text"]).to_pylist()
    return [
        Case(row["request_id"], texts.get(row["query_id"], ""), tuple(known), row["output_text"])
        for row in rows
        if (known := references.get(row["query_id"]))
    ]
