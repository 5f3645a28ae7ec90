"""Runs a progressive vector search for every question into a trace folder."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from s2l import __version__
from s2l.collecting.ann_options import AnnOptions
from s2l.collectors.ann.ann import Ann, Prepared
from s2l.collectors.ann.corpus import read_corpus
from s2l.collectors.ann.embedder import SentenceEmbedder
from s2l.collectors.ann.errors import AnnError
from s2l.collectors.ann.gpu import check_codes_fit_gpu, check_gpu
from s2l.collectors.ann.index import VectorIndex, build_index, holds_index, open_index
from s2l.collectors.ann.latency import LatencyModel
from s2l.collectors.ann.preparing import (
    Corpus,
    embed_corpus,
    measured_recall,
    no_time,
    prepare_questions,
)
from s2l.collectors.ann.progressive_search import ProgressiveSearch
from s2l.collectors.ann.rerank import CrossEncoderScorer, PairScorer, RerankStage
from s2l.collectors.ann.searchers import ProcessSearcher, Searcher, ThreadSearcher
from s2l.collectors.collect import Progress, collect
from s2l.drain import drained_on_interrupt
from s2l.progress import bar, say
from s2l.workloads.file_lock import alone
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.trace_writer import TraceWriter


@dataclass(frozen=True, slots=True)
class Opened:
    """Everything that a capture needs, and what its manifest is going to say."""

    corpus: Corpus
    questions: dict[str, Prepared]
    search: ProgressiveSearch
    latency: LatencyModel
    collector: Collector


def open_ann(queries: Sequence[Query], options: AnnOptions) -> Opened:
    """Read, split, embed and index the corpus; embed the questions; measure recall.

    Raises:
        AnnError, TraceError: an option cannot be followed, or the corpus or the index is wrong.
    """
    if options.gpu:
        check_gpu()
    documents = read_corpus(options.corpus)
    embedder = SentenceEmbedder.open(
        options.model, device=options.device, batch_size=options.batch_size
    )
    _say_cut(embedder, options.passages.tokens)
    scorer = options.reranker and CrossEncoderScorer.open(options.reranker, device=options.device)
    corpus = embed_corpus(
        documents, embedder, options.passages, options.cache / "embeddings", _say_embedded
    )
    folder = _built(corpus, options)
    questions = prepare_questions(queries, embedder, corpus.vectors, options.search.k)
    plain = _search(_index(corpus, folder, options), options)
    searches = [plain.run(one.question, no_time) for one in questions.values()]
    recall = measured_recall(searches, questions, options.search.k)
    del plain  # lists on disk leave memory only when nobody maps them
    search = _search(_index(corpus, folder, options), options, scorer or None, corpus)
    latency = options.latency([len(search.updates) for search in searches])
    found = {
        **options.recorded(),
        "documents": len(documents),
        "content_sha256": corpus.content,
        "passage_count": len(corpus.passages),
        "dimension": int(corpus.vectors.shape[1]),
        "embedder": embedder.name,
        "question_embedding": "before the search",
        "recall": recall,
        "recall_against": "exact search, before any reranking",
        **latency.options(),
    }
    collector = Collector("ann", __version__, found, options.seed)
    return Opened(corpus, questions, search, latency, collector)


def _say_cut(embedder: SentenceEmbedder, tokens: int) -> None:
    seen = embedder.seen_tokens
    if seen is not None and seen < tokens:
        say(
            f"passages of {tokens} tokens: the embedding model sees the first {seen} of them; "
            f"--passage-tokens {seen} cuts nothing off"
        )


def _say_embedded(done: int, total: int) -> None:
    say(f"embedding passages: {done}/{total}")


def _built(corpus: Corpus, options: AnnOptions) -> Path:
    """The folder of the index, which is built where there is none."""
    folder = options.index_folder(corpus.content)
    if options.gpu:
        check_codes_fit_gpu(options.indexed, corpus.vectors.shape[1])
    if options.rebuild or not holds_index(folder):
        lock = folder.with_name(f".{folder.name}.lock")
        try:
            with alone(lock, lambda: say(f"waiting: another process builds {folder}")):
                if options.rebuild or not holds_index(folder):  # by that process
                    _build(corpus, options, folder)
        except OSError as error:
            raise AnnError(f"{lock}: {error.strerror}; name another --index") from None
    return folder


def _build(corpus: Corpus, options: AnnOptions, folder: Path) -> None:
    say(f"building {options.indexed.kind} of {len(corpus.passages)} passages: {folder}")
    build_index(corpus.vectors, options.indexed, folder, corpus.content)


def _index(corpus: Corpus, folder: Path, options: AnnOptions) -> VectorIndex:
    return open_index(corpus.vectors, options.indexed, folder, corpus.content, gpu=options.gpu)


def _search(
    index: VectorIndex,
    options: AnnOptions,
    scorer: PairScorer | None = None,
    corpus: Corpus | None = None,
) -> ProgressiveSearch:
    """The stages of the index, and the reranker where there is one."""
    settings = options.search
    stages = list(index.stages(settings, options.width))
    if scorer is not None and corpus is not None:
        stages.append(RerankStage(scorer, corpus.passages, options.width))
    return ProgressiveSearch(stages, settings.k, settings.stop_when)


async def ann_into(
    path: Path, queries: Sequence[Query], opened: Opened, options: AnnOptions, *, licence: str
) -> bool:
    """Search into a new trace folder. Whether it was finished: not where it was interrupted.

    Raises:
        TraceError: the folder is not empty, or the disk would not take it.
    """
    with (
        searcher_of(opened, options) as searcher,
        TraceWriter.create(
            path, name=path.name, collector=opened.collector, licence=licence, queue=queries
        ) as writer,
        drained_on_interrupt("queries") as stop,
    ):
        state = await _capture(writer, queries, ann_of(opened, options, searcher), options, stop)
        if state.done < state.total:
            return False
        writer.finish()
        return True


def searcher_of(opened: Opened, options: AnnOptions) -> ProcessSearcher | ThreadSearcher:
    """Where the searches are going to run; entered before the capture begins."""
    if options.gpu or (options.reranker is not None and options.device != "cpu"):
        return ThreadSearcher(opened.search, options.searches)
    return ProcessSearcher(opened.search, options.searches)


def ann_of(opened: Opened, options: AnnOptions, searcher: Searcher) -> Ann:
    """The collector."""
    return Ann(
        opened.corpus.passages,
        opened.questions,
        searcher,
        opened.latency,
        k=options.search.k,
    )


async def _capture(
    writer: TraceWriter,
    queries: Sequence[Query],
    ann: Ann,
    options: AnnOptions,
    stop: asyncio.Event,
) -> Progress:
    with bar("ann", len(queries)) as shown:
        done = 0

        def advance(state: Progress) -> None:
            nonlocal done
            while done < state.done:
                done += 1
                shown.advance()

        return await collect(
            queries, ann, writer, concurrency=options.concurrency, progress=advance, stop=stop
        )
