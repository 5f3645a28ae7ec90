"""Ranks short texts, such as addresses and the words of links, against a question."""

import heapq
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote, urlsplit

_WORD: Final = re.compile(r"[^\W_]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ENDINGS: Final = frozenset({"html", "htm", "php", "asp", "aspx", "jsp", "xhtml", "index"})
# Words that say nothing of the subject. Texts this short hold few of them, so that their
# rarity would count for much.
_COMMON_TEXT: Final = (
    "a about an and are as at be by can did do does for from had has have how in into is it its "
    "of on or than that the their then there these they this to was were what when where which "
    "who whom whose why will with would you your"
)
_COMMON: Final = frozenset(_COMMON_TEXT.split())
_K1: Final = 1.2
_B: Final = 0.75


def words_of(text: str) -> list[str]:
    """The telling words of a text, in lower case, plurals in -s as their singular."""
    words = (word.lower() for word in _WORD.findall(text))
    return [_singular(word) for word in words if word not in _COMMON]


def words_of_url(url: str) -> list[str]:
    """The telling words of an address's path and query."""
    parts = urlsplit(url)
    text = _CAMEL.sub(" ", unquote(f"{parts.path} {parts.query}"))
    return [word for word in words_of(text) if word not in _ENDINGS]


def _singular(word: str) -> str:
    plural = len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if plural else word


class Bm25Index:
    """Texts under keys, scored by BM25 (Robertson and Zaragoza 2009, eq. 3.15; k1 1.2, b 0.75).

    Words may be added to a text at any time.
    """

    def __init__(self) -> None:
        self._lengths: dict[str, int] = {}
        self._total = 0
        self._places: defaultdict[str, dict[str, int]] = defaultdict(dict)

    def __contains__(self, key: str) -> bool:
        return key in self._lengths

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, key: str, words: Iterable[str]) -> None:
        """Add words to the text under ``key``, a new one if there is none."""
        counts = Counter(words)
        added = sum(counts.values())
        self._lengths[key] = self._lengths.get(key, 0) + added
        self._total += added
        for word, count in counts.items():
            places = self._places[word]
            places[key] = places.get(key, 0) + count

    def scores(self, question: str) -> dict[str, float]:
        """The score of every text that shares a word with the question."""
        scores: defaultdict[str, float] = defaultdict(float)
        mean = self._total / max(1, len(self._lengths)) or 1.0
        for word in dict.fromkeys(words_of(question)):
            places = self._places.get(word, {})
            rarity = math.log(1 + (len(self._lengths) - len(places) + 0.5) / (len(places) + 0.5))
            for key, count in places.items():
                norm = _K1 * (1 - _B + _B * self._lengths[key] / mean)
                scores[key] += rarity * count * (_K1 + 1) / (count + norm)
        return dict(scores)

    def best(self, question: str, n: int) -> list[str]:
        """The keys of the ``n`` best texts that share a word with the question, best first.

        Of equal ones the shorter key comes first, then the earlier in the alphabet.
        """
        scores = self.scores(question)
        return heapq.nsmallest(n, scores, key=lambda key: (-scores[key], len(key), key))
