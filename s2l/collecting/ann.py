"""A vector search on several workers, each with an index of its own that it searches."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from s2l.collecting.ann_capture import ann_of, open_ann, searcher_of
from s2l.collecting.ann_options import AnnOptions
from s2l.collecting.crew import ScaledCapture, Show
from s2l.collecting.run import Outcome, capture_with
from s2l.collecting.watch import Watch
from s2l.collectors.ann.errors import AnnError
from s2l.collectors.collect import Progress, collect
from s2l.progress import bar
from s2l.scale import Scale
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.trace_writer import TraceWriter


@dataclass(frozen=True, slots=True)
class AnnJob:
    """One worker's ``share`` of the questions. All of them are prepared by each worker: published
    gaps are fitted to the whole."""

    queries: tuple[Query, ...]
    share: tuple[Query, ...]
    options: AnnOptions
    licence: str

    async def capture(self, path: Path, watch: Watch) -> None:
        """Search. Raises what ``open_ann`` and ``ann_into`` do."""
        if not self.options.corpus.exists():
            raise AnnError(
                f"{self.options.corpus}: is not on {socket.gethostname()}; every machine of the "
                "cluster needs the corpus at this path"
            )
        watch.update(Progress(0, len(self.share), {}))
        opened = open_ann(self.queries, self.options)
        with (
            searcher_of(opened, self.options) as searcher,
            TraceWriter.create(
                path, name=path.name, collector=opened.collector, licence=self.licence
            ) as writer,
        ):
            await collect(
                self.share,
                ann_of(opened, self.options, searcher),
                writer,
                concurrency=self.options.concurrency,
                progress=watch.update,
                first_offset_us=await watch.begin(),
                stop=watch.stop,
            )
            writer.finish()  # drained or not: it is a part


async def ann_with(
    scale: Scale,
    path: Path,
    queries: Sequence[Query],
    options: AnnOptions,
    *,
    collector: Collector,
    licence: str,
) -> Outcome:
    """Search into a new trace folder, on several workers, over an index that was built before.

    Workers on this machine find the index and the embeddings in the cache; others make their own.

    Raises what ``open_ann`` and ``ann_into`` do; RayMissing, WorkerLost.
    """
    jobs = [
        AnnJob(tuple(queries), share, _own(options, scale, worker), licence)
        for worker, share in enumerate(scale.shares(queries))
    ]
    with scale.crew() as crew, bar("ann", len(queries)) as shown:

        def display(capture: ScaledCapture) -> Show:
            done = 0

            def advance(state: Progress) -> None:
                nonlocal done
                while done < state.done:
                    done += 1
                    shown.advance()

            return advance

        return await capture_with(
            crew, jobs, queries, path, collector=collector, licence=licence, display=display
        )


def with_searches(options: AnnOptions, scale: Scale, given: int | None) -> AnnOptions:
    """At least one search at once for each worker; on a GPU it is one for each.

    Raises:
        click.UsageError: fewer are asked for.
    """
    if given is not None and not options.gpu:
        scale.check_limit("--searches", given)
    return (
        options if options.gpu else replace(options, searches=max(options.searches, scale.workers))
    )


def _own(options: AnnOptions, scale: Scale, worker: int) -> AnnOptions:
    """One worker's, with paths that are found from any folder."""
    return replace(
        options,
        corpus=options.corpus.absolute(),
        cache=options.cache.absolute(),
        index=options.index.absolute() if options.index else None,
        model=_found(options.model),
        reranker=_found(options.reranker) if options.reranker else None,
        rebuild=False,
        concurrency=scale.share_of(options.concurrency, worker),
        searches=options.searches if options.gpu else scale.share_of(options.searches, worker),
    )


def _found(model: str) -> str:
    """A local folder by its whole path; another name as it is."""
    return str(Path(model).absolute()) if Path(model).exists() else model
