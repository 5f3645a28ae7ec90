"""Scores of one answer against its reference answers, with SQuAD normalisation.

The normalisation is that of Rajpurkar et al. 2016 (SQuAD): lower case, no ASCII punctuation, no
articles, single spaces. Each score is the best one over the references. An empty text (after
normalisation) matches only another empty one, as in SQuAD 2.0.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

_ARTICLES: Final = frozenset(("a", "an", "the"))
_ARTICLE: Final = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)

Scorer = Callable[[str, Sequence[str]], float]


@lru_cache(maxsize=8_192)
def normalise(text: str) -> str:
    """Lower case, without punctuation and articles, words one space apart."""
    words = text.lower().translate(_NO_PUNCTUATION).split()
    bare = " ".join(words)
    if not (bare.isascii() and bare.isprintable()):
        return " ".join(_ARTICLE.sub(" ", bare).split())
    # Here words are what stands between spaces, and a pattern's \b says nothing more.
    if _ARTICLES.isdisjoint(words):
        return bare
    return " ".join([word for word in words if word not in _ARTICLES])


def exact_match(answer: str, references: Sequence[str]) -> float:
    """1.0 when the normalised answer equals a normalised reference, else 0.0."""
    found = normalise(answer)
    return float(any(found == normalise(reference) for reference in references))


def token_f1(answer: str, references: Sequence[str]) -> float:
    """Harmonic mean of precision and recall over the bags of words, best over the references."""
    words = normalise(answer).split()
    return max((_f1(words, _bag(reference)) for reference in references), default=0.0)


def contains_answer(answer: str, references: Sequence[str]) -> float:
    """1.0 when a normalised reference stands in the normalised answer as whole words, else 0.0."""
    found = normalise(answer)
    return float(any(_contains(found, normalise(reference)) for reference in references))


@lru_cache(maxsize=8_192)
def _bag(reference: str) -> Counter[str]:
    """How often each word of the normalised reference stands in it."""
    return Counter(normalise(reference).split())


def _f1(words: list[str], reference: Counter[str]) -> float:
    n = reference.total()
    if not words or not n:
        return float(len(words) == n)
    common = sum(min(words.count(word), often) for word, often in reference.items())
    return 2 * common / (len(words) + n)


def _contains(found: str, reference: str) -> bool:
    return f" {reference} " in f" {found} " if reference else not found


SCORERS: Final[dict[str, Scorer]] = {
    "exact_match": exact_match,
    "token_f1": token_f1,
    "contains_answer": contains_answer,
}
"""Scorers by the name of their metric; all are between 0 and 1."""
