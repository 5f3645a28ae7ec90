"""A trace written anew with every record changed, in bounded memory, and never half there."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from s2l.workloads.arrival import Arrival
from s2l.workloads.card import dataset_card
from s2l.workloads.document import Document
from s2l.workloads.durable import sync_folder, write_durably
from s2l.workloads.errors import TraceError, disk_error
from s2l.workloads.manifest import MANIFEST, Manifest
from s2l.workloads.privacy import shown_options
from s2l.workloads.query import Query
from s2l.workloads.scrubbing.changes import with_change
from s2l.workloads.sealing import CARD
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter

Tell = Callable[[int], None]


Edited = Iterator[tuple[Document, Document | None]]
"""Documents with what became of them, in their order; None: dropped."""


def one_by_one(
    edit: Callable[[Document], Document | None],
) -> Callable[[Iterator[Document]], Edited]:
    """An edit of documents that looks at each by itself."""
    return lambda documents: ((document, edit(document)) for document in documents)


_AS_THEY_ARE: Final = one_by_one(lambda document: document)


@dataclass(frozen=True, slots=True)
class Edits:
    """What becomes of each record, and of what the manifest says of the capture. An arrival of
    which no document is left gets ``status``. An edit that changes a text gives it its own hash."""

    query: Callable[[Query], Query] = lambda query: query
    documents: Callable[[Iterator[Document]], Edited] = _AS_THEY_ARE
    arrival: Callable[[Arrival], Arrival] = lambda arrival: arrival
    options: Callable[[dict[str, Any]], dict[str, Any]] = lambda options: options
    status: str = "dropped"


@dataclass(frozen=True, slots=True)
class Rewritten:
    """``emptied`` arrivals lost all their documents."""

    documents: int
    changed: int
    dropped: int
    emptied: int


def rewrite(
    trace: Trace,
    path: Path,
    edits: Edits,
    change: Callable[[Rewritten], dict[str, Any]],
    *,
    privacy: str | None = None,
    tell: Tell = lambda done: None,
) -> Manifest:
    """Write the changed trace to the new folder ``path``; ``change`` words it for the manifest.

    Documents come first, then queries with their arrivals. Kept in memory: the ids of documents
    that were changed or dropped. The same trace and edits give the same bytes.

    Raises:
        TraceError: the trace is damaged, something is at ``path``, or it cannot be written.
    """
    if path.exists():
        raise TraceError(f"{path}: is there already; name a new folder")
    aside = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(aside, ignore_errors=True)  # of one that was killed
        manifest = _rewrite(trace, aside, edits, change, privacy, tell)
        os.rename(aside, path)
        sync_folder(path.parent)
    except OSError as error:
        raise disk_error(path, error) from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return manifest


def _rewrite(
    trace: Trace,
    aside: Path,
    edits: Edits,
    change: Callable[[Rewritten], dict[str, Any]],
    privacy: str | None,
    tell: Tell,
) -> Manifest:
    manifest = trace.manifest
    privacy = privacy or manifest.privacy
    options = shown_options(privacy, edits.options(manifest.collector.options))
    with TraceWriter.create(
        aside,
        name=manifest.name,
        collector=structs.replace(manifest.collector, options=options),
        licence=manifest.licence,
        privacy=privacy,
        clock=manifest.clock,
        created_utc=manifest.created_utc,
    ) as writer:
        copy = _Copy(writer, edits)
        for done, (document, edited) in enumerate(edits.documents(trace.documents()), start=1):
            copy.document(document, edited)
            tell(done)
        for retrieval in trace.retrievals():
            writer.add_query(edits.query(retrieval.query))
            for arrival in retrieval.arrivals:
                copy.arrival(arrival)
        finished = writer.finish()
    told = with_change(finished, change(copy.result))
    write_durably(aside / CARD, dataset_card(told).encode())
    write_durably(aside / MANIFEST, told.encode())
    return told


class _Copy:
    """Writes changed records, and keeps which documents have other ids now, or none."""

    def __init__(self, writer: TraceWriter, edits: Edits) -> None:
        self._writer = writer
        self._edits = edits
        self._ids: dict[str, str | None] = {}
        self.result = Rewritten(0, 0, 0, 0)

    def document(self, document: Document, changed: Document | None) -> None:
        found = self.result
        self.result = replace(
            found,
            documents=found.documents + 1,
            changed=found.changed + (changed is not None and changed != document),
            dropped=found.dropped + (changed is None),
        )
        if changed is not None:
            self._writer.add_document(changed)
        if changed is None or changed.doc_id != document.doc_id:
            self._ids[document.doc_id] = changed.doc_id if changed else None

    def arrival(self, arrival: Arrival) -> None:
        """Add it with the documents that are left, each once."""
        changed = self._edits.arrival(arrival)
        ids = (self._ids.get(doc_id, doc_id) for doc_id in changed.doc_ids)
        kept = tuple(dict.fromkeys(doc_id for doc_id in ids if doc_id is not None))
        if changed.doc_ids and not kept:
            self.result = replace(self.result, emptied=self.result.emptied + 1)
            changed = replace(changed, status=self._edits.status, detail="")
        self._writer.add_arrival(replace(changed, doc_ids=kept))
