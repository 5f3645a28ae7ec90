"""``s2l collect ann``"""

import asyncio
import os
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource
from platformdirs import user_cache_path

from s2l.collecting.ann import ann_with, with_searches
from s2l.collecting.ann_capture import Opened, ann_into, open_ann
from s2l.collecting.ann_options import AnnOptions
from s2l.collecting.shipped import shipped_questions
from s2l.collectors.ann.index_settings import IndexSettings, SearchSettings
from s2l.collectors.ann.indexes.registry import INDEX_KINDS
from s2l.collectors.ann.latency import GAPS
from s2l.collectors.ann.model_source import PACKAGED, pinned
from s2l.collectors.ann.passages import PassageSettings
from s2l.exits import FAILED, INTERRUPTED
from s2l.folders import TRACES, new_folder
from s2l.parameters import POSITIVE
from s2l.progress import say
from s2l.scale import Scale, scale_options
from s2l.workloads.errors import TraceError
from s2l.workloads.info import describe
from s2l.workloads.manifest import MANIFEST, decode_manifest
from s2l.workloads.plural import counted
from s2l.workloads.query import Query
from s2l.workloads.questions import read_questions
from s2l.workloads.trace import Trace

_PATH: Final = click.Path(path_type=Path)
_COUNT: Final = click.IntRange(1)
_OF_KIND: Final = {
    "nlist": ("ivf-flat", "ivf-pq", "ivf-disk"),
    "nprobe": ("ivf-flat", "ivf-pq", "ivf-disk"),
    "code_bytes": ("ivf-pq",),
    "refine": ("ivf-pq",),
    "links": ("hnsw",),
    "ef_construction": ("hnsw",),
    "ef_search": ("hnsw",),
}
"""Options that are for some kinds of index only."""


@click.command(short_help="Search a vector index; each change of the best is an arrival.")
@click.argument("corpus", type=_PATH, required=False)
@click.option("--queries", "questions", type=_PATH, help="JSONL of questions.")
@click.option("-n", "n_queries", type=_COUNT, help="Only the first N questions.")
@click.option("-k", type=_COUNT, default=5, show_default=True, help="Documents of the context.")
@click.option(
    "--model",
    default=PACKAGED,
    show_default=True,
    help="Embedding model: the packaged one, a local folder, or a hub's OWNER/NAME[@REVISION].",
)
@click.option("--device", default="cpu", show_default=True, help="Of the models: cpu, cuda.")
@click.option("--batch-size", type=_COUNT, default=32, show_default=True, help="Texts at once.")
@click.option("--passage-tokens", type=_COUNT, default=100, show_default=True)
@click.option("--overlap-tokens", type=click.IntRange(0), default=20, show_default=True)
@click.option(
    "--index-type",
    type=click.Choice(list(INDEX_KINDS)),
    default="ivf-flat",
    show_default=True,
    help="ivf-disk keeps its lists on disk, ivf-pq refines quantized scores by exact ones.",
)
@click.option("--nlist", type=_COUNT, help="Lists of an IVF. [by the corpus's size]")
@click.option("--nprobe", type=_COUNT, help="Lists searched, one after the other. [32]")
@click.option("--code-bytes", type=_COUNT, help="Of a quantized vector. [dimensions / 8]")
@click.option("--refine", type=_COUNT, help="Times k: candidates scored exactly. [4]")
@click.option("--links", type=_COUNT, help="Of a vector in the HNSW graph. [32]")
@click.option("--ef-construction", type=_COUNT, help="Candidates while HNSW is built. [200]")
@click.option("--ef-search", type=_COUNT, help="Candidates that an HNSW search ends with. [128]")
@click.option("--index", type=_PATH, help="Folder of the index, built there if it is not. [cache]")
@click.option("--rebuild", is_flag=True, help="Build the index even if there is one.")
@click.option("--gpu", is_flag=True, help="Search on a GPU (faiss-gpu).")
@click.option("--rerank", "reranker", help="Cross-encoder: a local folder, or OWNER/NAME.")
@click.option("--rerank-depth", type=_COUNT, help="Documents that are reranked. [k]")
@click.option("--stop-when", type=_COUNT, help="End a stage after N steps without a change.")
@click.option("--time-scale", type=POSITIVE, help="Stretch all times by this factor (1 or more).")
@click.option("--gaps", type=click.Choice(list(GAPS)), help="Stretch to published gaps, by seed.")
@click.option("--concurrency", type=_COUNT, default=8, show_default=True, help="Questions at once.")
@click.option("--searches", type=_COUNT, help="Searches at once. [all cores but one; 1 with --gpu]")
@scale_options
@click.option("--seed", type=int, default=0, show_default=True, help="Of the index and the gaps.")
@click.option("--cache", type=_PATH, help="Folder of embeddings and indexes. [the user's cache]")
@click.option("--licence", help="Licence of the text; default: that of the trace it is from.")
@click.option("--out", type=_PATH, help="Folder of the trace.")
@click.pass_context
def ann(context: click.Context, /, questions: Path | None, out: Path | None, **given: Any) -> int:
    """Search a vector index for every question, recording every change of the best documents.

    CORPUS is a .jsonl or .parquet file, a folder of text files, or a trace. Without options: the
    shipped questions over the documents of the newest crawl.
    """
    _check_fit(context, given["index_type"])
    corpus = given["corpus"] or newest_crawl(TRACES)
    options = _options(corpus, given)
    chosen = read_questions(questions or shipped_questions())[: given["n_queries"]]
    path = out or new_folder(TRACES, "ann")
    if path.exists() and (path.is_file() or any(path.iterdir())):
        raise click.UsageError(f"{path}: there already; name a new folder for the trace")
    licence = given["licence"] or _licence(corpus)
    scale = Scale(given["workers"], given["ray_address"])
    scale.check_limit("--concurrency", options.concurrency)
    options = with_searches(options, scale, given["searches"])
    opened = open_ann(chosen, options)
    try:
        if scale.is_one:
            finished = asyncio.run(ann_into(path, chosen, opened, options, licence=licence))
        else:
            finished = _scaled(scale, path, chosen, opened, options, licence)
    except asyncio.CancelledError:
        finished = False
    if finished:
        return _say_what_was_collected(path)
    say(f"interrupted; keep what was captured with: s2l dataset recover {path}")
    return INTERRUPTED


def _scaled(
    scale: Scale,
    path: Path,
    queries: list[Query],
    opened: Opened,
    options: AnnOptions,
    licence: str,
) -> bool:
    """Whether it was finished. Raises click.ClickException where a worker was lost."""
    outcome = asyncio.run(
        ann_with(scale, path, queries, options, collector=opened.collector, licence=licence)
    )
    outcome.check(f"s2l dataset recover {path}")
    return outcome.finished


def newest_crawl(parent: Path) -> Path:
    """The youngest finished trace below ``parent`` that a crawl captured.

    Raises:
        click.UsageError: there is none.
    """
    files = [file for file in parent.glob(f"*/{MANIFEST}") if file.is_file()]
    for file in sorted(files, key=lambda file: file.stat().st_mtime, reverse=True):
        if _collector_name(file) == "crawl":
            return file.parent
    raise click.UsageError(
        f"no crawl in {parent}/; name a corpus, or make a crawl with: s2l collect crawl"
    )


def _collector_name(manifest: Path) -> str:
    """Empty for what is no manifest of ours: another folder is the one to take."""
    try:
        return decode_manifest(manifest.read_bytes(), manifest).collector.name
    except TraceError:
        return ""


def _options(corpus: Path, given: dict[str, Any]) -> AnnOptions:
    spare = max(1, len(os.sched_getaffinity(0)) - 1)  # one core is left to the capture
    indexed = {"kind": "index_type", "lists": "nlist", "seed": "seed"}
    indexed |= {name: name for name in ("code_bytes", "links", "ef_construction")}
    search = {"k": "k", "lists_probed": "nprobe", "ef_search": "ef_search", "refined": "refine"}
    search |= {"reranked": "rerank_depth", "stop_when": "stop_when"}
    same = ["index", "rebuild", "device", "batch_size", "gpu", "time_scale", "gaps", "concurrency"]
    return AnnOptions(
        corpus=corpus,
        cache=given["cache"] or user_cache_path("s2l") / "ann",
        passages=PassageSettings(given["passage_tokens"], given["overlap_tokens"]),
        indexed=IndexSettings(**_given(given, indexed)),
        search=SearchSettings(**_given(given, search)),
        searches=given["searches"] or (1 if given["gpu"] else spare),
        model=pinned(given["model"]),
        reranker=pinned(given["reranker"]) if given["reranker"] else None,
        **{name: given[name] for name in same},
    )


def _given(given: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """The settings that were given, by their own names; the others have their defaults."""
    return {name: given[option] for name, option in names.items() if given[option] is not None}


def _check_fit(context: click.Context, kind: str) -> None:
    """Refuse options that would change nothing, and those that exclude one another."""

    def is_given(name: str) -> bool:
        return context.get_parameter_source(name) is not ParameterSource.DEFAULT

    for name, kinds in _OF_KIND.items():
        if is_given(name) and kind not in kinds:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} is for --index-type {' or '.join(kinds)} only")
    if is_given("rerank_depth") and not is_given("reranker"):
        raise click.UsageError("--rerank-depth is for --rerank only")
    if is_given("time_scale") and is_given("gaps"):
        raise click.UsageError("give --time-scale or --gaps, not both")


def _licence(corpus: Path) -> str:
    return Trace.open(corpus).manifest.licence if (corpus / MANIFEST).is_file() else "unknown"


def _say_what_was_collected(path: Path) -> int:
    """Say what a new trace holds; the exit code: failure when no document was found at all."""
    trace = Trace.open(path)
    info, options = describe(trace), trace.manifest.collector.options
    failed = sum(info.failures.values())
    say(
        f"trace: {path}  {counted(info.finished_queries, 'query', 'queries')}, "
        f"{counted(info.documents, 'document')}, "
        f"{counted(info.arrivals.get('replace', 0), 'update')} ({failed} failed)"
    )
    recall = ", ".join(f"at {k} {value:.3f}" for k, value in options["recall"].items())
    say(f"recall against exact search: {recall or 'not measured'}; times: {options['latency']}")
    if info.documents == 0:
        say("nothing was found; see the failures with: s2l dataset info")
        return FAILED
    return 0
