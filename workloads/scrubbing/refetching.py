"""Texts that a trace hides, filled back in from their addresses, with the hashes compared."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final

from s2l.workloads.document import Document
from s2l.workloads.errors import TraceError
from s2l.workloads.manifest import Manifest
from s2l.workloads.scrubbing.rewriting import Edited, Edits, Rewritten, Tell, rewrite
from s2l.workloads.trace import Trace

NOT_REFETCHED: Final = "not_refetched"
_BATCH: Final = 64


@dataclass(frozen=True, slots=True)
class FetchedText:
    """What is at an address now."""

    text: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class NotFetched:
    """Nothing could be had; ``status`` is the failure's code."""

    status: str


FetchTexts = Callable[[Sequence[str]], Sequence[FetchedText | NotFetched]]
"""Fetches addresses and extracts their texts, as the collector did; in the order given."""


class Refetch:
    """Fills documents in and counts: ``same``, ``changed`` and ``failed``, by its status.

    A text with another hash than the captured one is ``changed``: it is left out, or with
    ``keep_changed`` kept under its own hash, with ``refetched`` in its meta.
    """

    def __init__(self, fetch: FetchTexts, *, keep_changed: bool = False) -> None:
        self._fetch = fetch
        self.keep_changed = keep_changed
        self.counts: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()

    def documents(self, documents: Iterator[Document]) -> Edited:
        """Each document with what became of it, fetched some at a time."""
        while batch := list(islice(documents, _BATCH)):
            hidden = [document for document in batch if document.text is None]
            found = iter(self._fetch([document.url for document in hidden]))
            for document in batch:
                filled = (
                    document if document.text is not None else self._fill(document, next(found))
                )
                yield document, filled

    def _fill(self, document: Document, found: FetchedText | NotFetched) -> Document | None:
        if isinstance(found, NotFetched):
            self.counts["failed"] += 1
            self.failures[found.status] += 1
            return None
        if sha256(found.text.encode()).hexdigest() == document.text_sha256:
            self.counts["same"] += 1
            return replace(document, text=found.text)
        self.counts["changed"] += 1
        return self._changed(document, found) if self.keep_changed else None

    def _changed(self, document: Document, found: FetchedText) -> Document:
        made = Document.of_text(
            url=document.url,
            title=found.title or document.title,
            text=found.text,
            mime=document.mime,
            fetched_utc=document.fetched_utc,
        )
        return replace(made, meta={**document.meta, "refetched": "changed"})


def refill(trace: Trace, path: Path, refetch: Refetch, tell: Tell = lambda done: None) -> Manifest:
    """Write the trace with its texts to the new folder ``path``; see ``rewrite``.

    Arrivals whose documents cannot be filled in have the status ``not_refetched``; all times stay.

    Raises:
        TraceError: the trace hides no texts, or hides their addresses as well.
    """
    privacy = trace.manifest.privacy
    if privacy != "urls":
        why = "hides no texts" if privacy == "full" else "has hashes in place of its addresses"
        raise TraceError(f"{trace.path}: {why}; texts can be fetched anew with privacy urls")

    def change(_: Rewritten) -> dict[str, Any]:
        counts = {name: refetch.counts[name] for name in ("same", "changed", "failed")}
        changed = "kept as they are now" if refetch.keep_changed else "left out"
        return {"what": "refetch", **counts, "changed_are": changed}

    edits = Edits(documents=refetch.documents, status=NOT_REFETCHED)
    return rewrite(trace, path, edits, change, privacy="full", tell=tell)
