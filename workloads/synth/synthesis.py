"""From shapes to a trace dataset with texts of exactly their lengths."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.arrival_process import arrival_process
from s2l.workloads.document import Document
from s2l.workloads.manifest import Collector, Manifest
from s2l.workloads.query import Query
from s2l.workloads.synth.profile import Profile
from s2l.workloads.synth.shape import QueryShape
from s2l.workloads.synth.text import TextMaker
from s2l.workloads.synth.unfinished import unfinished_removed
from s2l.workloads.trace_writer import TraceWriter

LICENCE = "CC0-1.0"
"""Synthetic texts are nobody's."""


@dataclass(frozen=True, slots=True)
class SynthOptions:
    """How many queries, from which seed, starting when. ``version`` is this program's."""

    queries: int
    seed: int = 0
    rate_qps: float = 1.0
    arrivals: str = "poisson"
    privacy: str = "full"
    version: str = "0"


def write_synthetic(
    path: Path,
    profile: Profile,
    texts: TextMaker,
    options: SynthOptions,
    tell: Callable[[int], None] = lambda done: None,
) -> Manifest:
    """Write a synthetic trace to a new folder, one query after another.

    The creation time is fixed, so that the same seed gives the same bytes.

    Raises:
        TraceError: the folder cannot be written.
        ValueError: a rate or an arrival process that does not exist.
    """
    process = arrival_process(options.arrivals)
    starts_us = process(options.queries, options.rate_qps, options.seed, ())
    settings = _settings(profile, texts, options)
    with (
        unfinished_removed(path),
        TraceWriter.create(
            path,
            name=f"synthetic {profile.name}",
            collector=Collector("synth", options.version, settings, options.seed),
            licence=LICENCE,
            privacy=options.privacy,
            clock="none",
            created_utc="1970-01-01T00:00:00Z",
        ) as writer,
    ):
        for number, shape in enumerate(profile.shapes(options.queries, options.seed)):
            _write_query(writer, f"s{number:07}", int(starts_us[number]), shape, texts)
            tell(number + 1)
        return writer.finish()


def _settings(profile: Profile, texts: TextMaker, options: SynthOptions) -> dict[str, Any]:
    return {
        "profile": profile.name,
        "queries": options.queries,
        "rate_qps": options.rate_qps,
        "arrivals": options.arrivals,
        "tokens_of": texts.name,
    }


def _write_query(
    writer: TraceWriter, query_id: str, start_us: int, shape: QueryShape, texts: TextMaker
) -> None:
    for document in _documents(query_id, shape, texts):
        writer.add_document(document)
    meta: dict[str, Any] = {"tokens": shape.question_tokens, "synthetic": True}
    if shape.output_tokens is not None:
        meta["output_tokens"] = shape.output_tokens
    text = texts.text(f"{query_id} question", shape.question_tokens)
    writer.add_query(Query(query_id, text, (), start_us, meta))
    for arrival in _arrivals(query_id, shape):
        writer.add_arrival(arrival)


def _documents(query_id: str, shape: QueryShape, texts: TextMaker) -> Iterator[Document]:
    for number, tokens in enumerate(shape.document_tokens):
        doc_id = _doc_id(query_id, number)
        text = texts.text(doc_id, tokens)
        digest = sha256(text.encode()).hexdigest()
        url = f"synthetic:{doc_id}"
        yield Document(
            doc_id, url, "", text, digest, len(text), "text/plain", meta={"tokens": tokens}
        )


def _arrivals(query_id: str, shape: QueryShape) -> Iterator[Arrival]:
    for seq, one in enumerate(shape.arrivals):
        doc_ids = tuple(_doc_id(query_id, number) for number in one.documents)
        times = (one.start_us, one.arrival_us)
        yield Arrival(query_id, seq, one.kind, *times, doc_ids, one.status)
    yield Arrival(query_id, len(shape.arrivals), ArrivalKind.END, shape.end_us, shape.end_us)


def _doc_id(query_id: str, number: int) -> str:
    return f"{query_id}-{number}"
