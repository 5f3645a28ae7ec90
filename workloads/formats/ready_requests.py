"""A retrieval as one request, at the moment when its context was ready."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from s2l.workloads.context import final_context
from s2l.workloads.document import Document
from s2l.workloads.errors import ExportFailed
from s2l.workloads.formats.base import ExportOptions
from s2l.workloads.query import Query
from s2l.workloads.retrieval import Retrieval
from s2l.workloads.token_counter import document_tokens
from s2l.workloads.trace import Trace
from s2l.workloads.with_documents import retrievals_with_documents

_LENGTHS: Final = frozenset({"tokens", "synthetic", "output_tokens"})

LOSES: Final = (
    "when each piece of context came (only when all of it was there), documents as such, answers, "
    "failures, retrievals that never ended"
)
"""What rows of one request each cannot carry."""


@dataclass(frozen=True, slots=True)
class ReadyRequest:
    """A retrieval as one request, at the moment when its context was ready."""

    query: Query
    offset_us: int
    documents: tuple[Document, ...]
    options: ExportOptions

    @property
    def prompt(self) -> str:
        """All texts, a line each, the question last. Raises ExportFailed where one is hidden."""
        texts = [text_of_document(document) for document in self.documents]
        return "\n".join([*texts, self.query.text] if self.query.text else texts)

    @property
    def input_tokens(self) -> int:
        """Tokens of all of it. Raises ExportFailed where a hidden text says no length."""
        counter = self.options.counter
        try:
            context = sum(document_tokens(document, counter) for document in self.documents)
        except ValueError as error:
            raise ExportFailed(str(error)) from None
        question = self.query.meta.get("tokens")
        if isinstance(question, int):
            return context + question
        return context + (counter.count([self.query.text])[0] if self.query.text else 0)

    @property
    def blocks(self) -> tuple[int, ...] | None:
        """Block numbers, where the context is made of such blocks and nothing else."""
        parts = [document.doc_id.split("-") for document in self.documents]
        if self.query.text or not parts or not all(map(_is_block, parts)):
            return None
        return tuple(int(part[1]) for part in parts)

    @property
    def is_synthetic(self) -> bool:
        """Whether its text says nothing: it was made for its length alone."""
        made = not self.query.text or "synthetic" in self.query.meta
        return made and all("tokens" in one.meta for one in self.documents)


def _is_block(parts: list[str]) -> bool:
    return parts[0] == "block" and len(parts) in (2, 3) and all(p.isdecimal() for p in parts[1:])


def text_of_document(document: Document) -> str:
    """Its text. Raises ExportFailed where it is hidden."""
    if document.text is None:
        raise ExportFailed(f"document {document.doc_id!r} has no text; this format needs it")
    return document.text


def ready_requests(trace: Trace, options: ExportOptions) -> Iterator[ReadyRequest]:
    """The finished retrievals of a trace, in its order, each as one request."""
    done = 0
    for retrieval, documents in retrievals_with_documents(trace):
        if retrieval.finished:
            yield _ready(retrieval, documents, options)
            done += 1
            options.tell(done)


def _ready(
    retrieval: Retrieval, documents: Mapping[str, Document], options: ExportOptions
) -> ReadyRequest:
    query = retrieval.query
    context = tuple(documents[doc] for doc in final_context(retrieval.arrivals))
    due_us = query.offset_us + retrieval.arrivals[-1].arrival_us
    return ReadyRequest(query, due_us, context, options)


def known_output(query: Query) -> int | None:
    """Output tokens that the row asked for."""
    found = query.meta.get("output_tokens")
    return found if isinstance(found, int) else None


def other_meta(query: Query) -> dict[str, Any]:
    """What the query's ``meta`` holds beside the lengths, which have columns of their own."""
    return {key: value for key, value in query.meta.items() if key not in _LENGTHS}
