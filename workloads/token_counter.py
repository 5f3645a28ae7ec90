"""Counting tokens, with any tokenizer or with none."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from s2l.workloads.document import Document

WORDS: Final = "words"


class TokenCounter(Protocol):
    """Counts the tokens of texts, special tokens left out."""

    @property
    def name(self) -> str:
        """What says which tokens are counted; kept with every figure."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text."""


class WordCounter:
    """Takes every word between white space for one token.

    An approximation: English prose has about 1.3 tokens a word in today's vocabularies, code and
    other scripts have more. Synthetic text made without a tokenizer is exact in it.
    """

    name = WORDS

    def count(self, texts: Sequence[str]) -> list[int]:
        """Words of each text."""
        return [len(text.split()) for text in texts]


def token_counter(tokenizer: Path | None) -> TokenCounter:
    """The counter of a ``tokenizer.json`` (or of the folder it is in); without one, of words.

    Raises:
        TokenizerError: there is no such file, it cannot be read, or the package is missing.
    """
    if tokenizer is None:
        return WordCounter()
    from s2l.workloads.tokenizer_file import TokenizerFile

    return TokenizerFile.open(tokenizer)


def document_tokens(document: Document, counter: TokenCounter) -> int:
    """The tokens of a document: as it says itself, where it was made to measure; else counted.

    Raises:
        ValueError: its text is hidden, and it does not say.
    """
    said = document.meta.get("tokens")
    if isinstance(said, int):
        return said
    if document.text is None:
        raise ValueError(f"document {document.doc_id!r} has no text to count tokens of")
    return counter.count([document.text])[0]
