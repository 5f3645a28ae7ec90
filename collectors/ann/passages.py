"""Splits documents into passages of bounded length that overlap."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from s2l.collectors.ann.errors import AnnError, missing
from s2l.workloads.document import Document


@dataclass(frozen=True, slots=True)
class PassageSettings:
    """Lengths in tokens of the embedding model, special tokens left out."""

    tokens: int = 100
    overlap_tokens: int = 20

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise AnnError(f"passages of {self.tokens} tokens: give 1 or more")
        if not 0 <= self.overlap_tokens < self.tokens:
            raise AnnError(
                f"an overlap of {self.overlap_tokens} tokens: give less than the passage's "
                f"{self.tokens}"
            )


def split_into_passages(
    documents: Iterable[Document], tokenizer: Any, settings: PassageSettings
) -> list[Document]:
    """The passages of all documents, in order; ``tokenizer`` is a ``tokenizers.Tokenizer``.

    A passage is cut at the largest unit of text that fits (paragraph, sentence, word). Its id is
    its document's with a number; ``meta`` has the document and the character it begins at.

    Raises:
        AnnError: two passages would have the same id, or there are none.
    """
    splitter = _splitter(tokenizer, settings)
    passages = [passage for document in documents for passage in _passages(document, splitter)]
    seen: set[str] = set()
    for passage in passages:
        if passage.doc_id in seen:
            raise AnnError(f"two passages would have the id {passage.doc_id!r}; rename a document")
        seen.add(passage.doc_id)
    if not passages:
        raise AnnError("the corpus is empty: none of its documents has any text")
    return passages


def _splitter(tokenizer: Any, settings: PassageSettings) -> Any:
    try:
        from semantic_text_splitter import TextSplitter
    except ImportError:
        raise missing("semantic-text-splitter") from None
    return TextSplitter.from_huggingface_tokenizer(
        tokenizer, settings.tokens, settings.overlap_tokens
    )


def _passages(document: Document, splitter: Any) -> Iterator[Document]:
    for number, (start, text) in enumerate(splitter.chunk_indices(document.text or "")):
        yield replace(
            document,
            doc_id=f"{document.doc_id}#{number}",
            text=text,
            text_sha256=sha256(text.encode()).hexdigest(),
            n_chars=len(text),
            meta={"document": document.doc_id, "start_char": start},
        )
