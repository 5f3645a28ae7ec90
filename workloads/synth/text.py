"""Texts of exactly so many tokens, the same on every machine."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, Protocol

import numpy as np

from s2l.workloads.errors import TokenizerError
from s2l.workloads.synth.words import WORDS
from s2l.workloads.token_counter import TokenCounter, WordCounter

_FEWEST_WORDS: Final = 16
_FILL_LIMIT: Final = 64
_FILLERS: Final = (" a", " .", ".", "a", "\n", " 1", "!")


class TextMaker(Protocol):
    """Makes texts; ``name`` says whose tokens are meant."""

    @property
    def name(self) -> str:
        """Of the tokenizer."""

    def text(self, key: str, tokens: int) -> str:
        """The text of this key that is exactly ``tokens`` long.

        With words that are one token each, a shorter text is the beginning of a longer one.
        """


class WordTexts:
    """Texts of so many words, each of which counts as one token."""

    def __init__(self, seed: int, words: Sequence[str] = WORDS, name: str = WordCounter.name):
        self.name = name
        self._seed = seed
        self._words = tuple(words)

    def text(self, key: str, tokens: int) -> str:
        """Words drawn by the seed and the key."""
        digest = sha256(f"{self._seed}\n{key}".encode()).digest()
        generator = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))
        # Of all that is drawn from PCG64, NumPy keeps the doubles alone from version to version.
        places = (generator.random(tokens) * len(self._words)).astype(np.intp)
        return " ".join(map(self._words.__getitem__, places.tolist()))


class TokenizedTexts:
    """Texts of exactly so many tokens of any tokenizer; each one is counted before it is given.

    Words that are one token by themselves and after a space come first: then n words are n
    tokens. Where the tokenizer knows too few of them, as many words as fit are filled up with
    single characters.
    """

    def __init__(self, seed: int, counter: TokenCounter) -> None:
        self.name = counter.name
        self._counter = counter
        known = one_token_words(counter)
        self._plain = len(known) >= _FEWEST_WORDS
        self._words = WordTexts(seed, known if self._plain else WORDS)

    def text(self, key: str, tokens: int) -> str:
        """The text. Raises TokenizerError where no text of this length was found."""
        text = self._words.text(key, tokens)
        if self._count(text) == tokens:
            return text
        # Some vocabularies have whole phrases: fewer tokens than words.
        return self._fitted(self._words.text(key, 2 * tokens + 8).split(), tokens)

    def _count(self, text: str) -> int:
        return self._counter.count([text])[0]

    def _fitted(self, words: list[str], tokens: int) -> str:
        """As many words as fit, by bisection, then fillers; fewer words where these do not fit."""
        low, high = 0, len(words)
        while low < high:
            middle = (low + high + 1) // 2
            if self._count(" ".join(words[:middle])) <= tokens:
                low = middle
            else:
                high = middle - 1
        for kept in range(low, max(-1, low - 8), -1):
            found = self._filled(" ".join(words[:kept]), tokens)
            if found is not None:
                return found
        raise TokenizerError(f"{self.name}: no text of exactly {tokens} tokens was found")

    def _filled(self, text: str, tokens: int) -> str | None:
        """The text with single characters after it; None where it never has the length."""
        for filler in _FILLERS:
            filled = text
            for _ in range(_FILL_LIMIT):
                count = self._count(filled)
                if count == tokens:
                    return filled
                if count > tokens:
                    break
                filled += filler
        return None


def one_token_words(counter: TokenCounter) -> list[str]:
    """The words that are one token each, alone and after another word."""
    alone = counter.count(WORDS)
    after = counter.count([f"{word} {word}" for word in WORDS])
    known = [w for w, one, two in zip(WORDS, alone, after, strict=True) if (one, two) == (1, 2)]
    together = counter.count([" ".join(known)])[0]
    return known if together == len(known) else []


def text_maker(seed: int, counter: TokenCounter) -> TextMaker:
    """The maker of texts in the tokens that ``counter`` counts."""
    if isinstance(counter, WordCounter):
        return WordTexts(seed)
    return TokenizedTexts(seed, counter)
