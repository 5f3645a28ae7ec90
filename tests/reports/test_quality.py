import pytest

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
