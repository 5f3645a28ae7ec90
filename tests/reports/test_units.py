import pytest

from s2l.reports.units import percent


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "n/a"),
        (0.0, "0 %"),
        (0.0004, "< 0.1 %"),
        (0.0006, "0.1 %"),
        (0.325, "32.5 %"),
        (0.9994, "99.9 %"),
        (0.9996, "> 99.9 %"),
        (1.0, "100 %"),
    ],
)
def test_not_quite_none_or_all_is_not_called_that(share: float | None, text: str) -> None:
    assert percent(share) == text
