import re
import string
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s2l.reports.quality import contains_answer, exact_match, normalise, token_f1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Eiffel Tower!", "eiffel tower"),
        ("a cat, an owl and the dog.", "cat owl and dog"),
        ("theatre", "theatre"),
        ("U.S.A.", "usa"),
        ("the", ""),
        ("", ""),
    ],
)
def test_normalisation(text: str, expected: str) -> None:
    assert normalise(text) == expected


@pytest.mark.parametrize(
    ("answer", "references", "exact", "f1", "contains"),
    [
        ("The Norman Conquest.", ["norman conquest"], 1.0, 1.0, 1.0),
        ("in the 10th century", ["10th and 11th centuries", "10th century"], 0.0, 0.8, 1.0),
        ("Paris Paris", ["Paris"], 0.0, 2 / 3, 1.0),
        ("I know", ["no"], 0.0, 0.0, 0.0),
        ("", ["Paris"], 0.0, 0.0, 0.0),
        ("Paris", [""], 0.0, 0.0, 0.0),
        ("", [""], 1.0, 1.0, 1.0),
        ("the", ["a"], 1.0, 1.0, 1.0),
        ("Paris", [], 0.0, 0.0, 0.0),
    ],
)
def test_scores(
    answer: str, references: list[str], exact: float, f1: float, contains: float
) -> None:
    assert exact_match(answer, references) == exact
    assert token_f1(answer, references) == pytest.approx(f1)
    assert contains_answer(answer, references) == contains


def squad_normalised(text: str) -> str:
    """The steps of the SQuAD evaluation, one after another."""
    bare = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


WORDS = st.sampled_from(["a", "an", "the", "The", "cat", "“the”", "à", "x\x00a", "\u2028", "it's"])
TEXTS = st.text() | st.lists(WORDS).map(" ".join)


@settings(deadline=None)
@given(TEXTS)
def test_normalisation_is_that_of_squad(text: str) -> None:
    assert normalise(text) == squad_normalised(text)


@settings(deadline=None)
@given(TEXTS, st.lists(TEXTS, max_size=3))
def test_f1_is_that_of_the_bags_of_words(answer: str, references: list[str]) -> None:
    expected = []
    for reference in references:
        bags = [Counter(squad_normalised(text).split()) for text in (answer, reference)]
        common, sizes = (bags[0] & bags[1]).total(), [bag.total() for bag in bags]
        expected.append(2 * common / sum(sizes) if all(sizes) else float(sizes == [0, 0]))
    assert token_f1(answer, references) == pytest.approx(max(expected, default=0.0))
