"""Requests without a retrieval: one row, one query, its whole input there at once.

What Mooncake, vLLM, GuideLLM, Azure and BurstGPT traces have in common. Input that comes with a
text is the query's; input of which only the length is known is context, in shared blocks where
the row says so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.formats.base import PLAIN, PlannedDocument, Record
from s2l.workloads.query import Query

BLOCK_TOKENS: Final = 512


@dataclass(frozen=True, slots=True)
class Request:
    """One row. ``text`` or ``input_tokens`` is known; ``before`` are earlier messages."""

    query_id: str
    offset_us: int = 0
    text: str | None = None
    input_tokens: int = 0
    blocks: tuple[int, ...] = ()
    before: tuple[Document, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)


def records_of(request: Request) -> Iterator[Record]:
    """The request as a finished retrieval whose documents all came at its start."""
    planned = () if request.text is not None else _planned(request)
    documents: tuple[Document | PlannedDocument, ...] = (*request.before, *planned)
    query_id = request.query_id
    yield from documents
    yield Query(query_id, request.text or "", (), request.offset_us, request.meta)
    if documents:
        ids = tuple(one.doc_id for one in documents)
        yield Arrival(query_id, 0, ArrivalKind.APPEND, 0, 0, ids)
    yield Arrival(query_id, len(documents) and 1, ArrivalKind.END, 0, 0)


def _planned(request: Request) -> tuple[PlannedDocument, ...]:
    if not request.blocks:
        own = PlannedDocument(f"input-{request.query_id}", request.query_id, request.input_tokens)
        return (own,) if request.input_tokens else ()
    return tuple(
        _block(block, min(BLOCK_TOKENS, request.input_tokens - BLOCK_TOKENS * place))
        for place, block in enumerate(request.blocks)
    )


def _block(block: int, tokens: int) -> PlannedDocument:
    """A block's text follows from its number, so that shared blocks are shared text."""
    name = f"block-{block}" if tokens == BLOCK_TOKENS else f"block-{block}-{tokens}"
    return PlannedDocument(name, f"block {block}", tokens)


def check_blocks(found: object, input_tokens: int) -> tuple[int, ...]:
    """Block numbers that cover the input exactly. Raises ValueError."""
    if not isinstance(found, list) or not all(type(one) is int and one >= 0 for one in found):
        raise ValueError("hash_ids must be a list of whole numbers, 0 or more")
    needed = -(-input_tokens // BLOCK_TOKENS)
    if len(found) != needed:
        raise ValueError(f"hash_ids has {len(found)} blocks; {input_tokens} tokens are {needed}")
    return tuple(found)


def message(role: str, text: str) -> Document:
    """An earlier message of a conversation, as context."""
    return Document.of_text(url="", title=role, text=text, mime=PLAIN)
