"""Importing: from the records of a format's reader to a trace dataset."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from s2l.workloads.arrival import Arrival
from s2l.workloads.document import Document
from s2l.workloads.errors import ImportFailed
from s2l.workloads.formats.base import (
    PLAIN,
    Format,
    ImportOptions,
    PlannedDocument,
    PlannedQuery,
    Record,
)
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.manifest import Collector, Manifest
from s2l.workloads.query import Query
from s2l.workloads.synth.text import TextMaker
from s2l.workloads.synth.unfinished import unfinished_removed
from s2l.workloads.trace_writer import TraceWriter


@dataclass(frozen=True, slots=True)
class Provenance:
    """What the manifest says of where an imported trace is from."""

    name: str
    version: str
    licence: str = "unknown"
    seed: int = 0


def import_trace(
    source: Path,
    fmt: Format,
    out: Path,
    texts: TextMaker,
    provenance: Provenance,
    options: ImportOptions = ImportOptions(),  # noqa: B008  (frozen)
    log: ImportLog | None = None,
) -> Manifest:
    """Write the trace that is at ``source`` in an outside format to the new folder ``out``.

    Rows that cannot be used are left out, named and counted in ``log``; memory holds ids and one
    file's worth of the largest part.

    Raises:
        ImportFailed: nothing can be read, or a row is bad and the log is strict.
        TraceError: ``out`` cannot be written.
    """
    log = log or ImportLog()
    if not source.exists():
        raise ImportFailed(f"{source}: no such file or folder; name what to import")
    records = fmt.read(source, options, log)
    first = next(records, None)
    if first is None:
        why = f": {log.listed[0]}" if log.listed else ""
        raise ImportFailed(f"{source}: nothing in it can be imported as {fmt.name}{why}")
    settings = _settings(fmt, options, log, texts)
    collector = Collector(f"import-{fmt.name}", provenance.version, settings, provenance.seed)
    name, licence = provenance.name, provenance.licence
    with (
        unfinished_removed(out),
        TraceWriter.create(out, name=name, collector=collector, licence=licence) as writer,
    ):
        _write_all(writer, chain([first], records), texts)
        return writer.finish()


def _settings(
    fmt: Format, options: ImportOptions, log: ImportLog, texts: TextMaker
) -> dict[str, Any]:
    return {
        "format": fmt.name,
        "arrival": options.arrival,
        "delays": options.delays.name if options.delays else None,
        "passage_gap_us": options.passage_gap_us,
        "tokens_of": texts.name,
        **log.facts,
    }


def _write_all(writer: TraceWriter, records: Iterator[Record], texts: TextMaker) -> None:
    for record in records:
        try:
            _write(writer, record, texts)
        except (ValueError, OverflowError) as error:
            raise ImportFailed(f"{writer.path}: cannot hold what was read: {error}") from None


def _write(writer: TraceWriter, record: Record, texts: TextMaker) -> None:
    match record:
        case Arrival():
            writer.add_arrival(record)
        case Query():
            writer.add_query(record)
        case PlannedQuery():
            text = texts.text(record.key, record.tokens)
            writer.add_query(replace(record.query, text=text))
        case Document():
            writer.add_document(record)
        case PlannedDocument():
            if not writer.has_document(record.doc_id):
                writer.add_document(made_document(record, texts))


def made_document(planned: PlannedDocument, texts: TextMaker) -> Document:
    """The document with its text, and with what it measures in ``meta``."""
    text = texts.text(planned.key, planned.tokens)
    digest = sha256(text.encode()).hexdigest()
    meta = {"tokens": planned.tokens}
    return Document(planned.doc_id, "", "", text, digest, len(text), PLAIN, meta=meta)
