"""The rates of a sweep, and the search for the highest one: pure arithmetic, exact values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2l.sweeping.rate_search import RateSearch
from s2l.sweeping.rates import MOST_RATES, parse_rates


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("1,2,4", (1, 2, 4)),
        ("4, 1,2,2", (1, 2, 4)),
        ("0.5", (0.5,)),
        ("1..32", (1, 2, 4, 8, 16, 32)),
        ("1..20", (1, 2, 4, 8, 16, 20)),
        ("0.1..0.4", (0.1, 0.2, 0.4)),
        ("3..3", (3,)),
        ("1..5:1", (1, 2, 3, 4, 5)),
        ("0.1..0.35:0.1", (0.1, 0.2, 0.3)),
        ("1..4,10..12:1,100", (1, 2, 4, 10, 11, 12, 100)),
    ],
)
def test_how_rates_are_written(text: str, rates: tuple[float, ...]) -> None:
    assert parse_rates(text) == rates


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a list of rates; write 1,2,4 or"),
        ("1,,2", "'1,,2' is not a list of rates"),
        ("fast", "'fast' is not a list of rates"),
        ("1..", "'1..' is not a list of rates"),
        ("1-5", "'1-5' is not a list of rates"),
        ("0", "0 is out of range; a rate is above 0"),
        ("-1", "-1 is out of range"),
        ("inf", "inf is out of range"),
        ("0..4", "0 is out of range"),
        ("1..5:0", "0 is out of range"),
        ("5..1", "'5..1' goes down"),
        ("1..1000000:1", f"more than {MOST_RATES} rates"),
    ],
)
def test_what_is_no_list_of_rates(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_rates(text)
    assert message in str(caught.value)


def searched(search: RateSearch, limit: float) -> list[float]:
    """The rates that are tried on a server that manages ``limit``, in order."""
    tried: dict[float, bool] = {}
    while (rate := search.next_rate(tried)) is not None:
        assert rate not in tried
        tried[rate] = rate <= limit
    return list(tried)


def test_it_doubles_then_closes_in() -> None:
    assert searched(RateSearch(1, 0.1), 10) == [1, 2, 4, 8, 16, 11.3, 9.51, 10.4]


def test_it_halves_where_the_first_is_too_much() -> None:
    assert searched(RateSearch(8, 0.5), 1.5) == [8, 4, 2, 1, 1.41]


def test_it_ends_at_its_bounds() -> None:
    assert searched(RateSearch(4, lowest=1), 0.5) == [4, 2, 1]
    assert searched(RateSearch(4, highest=10), 1e9) == [4, 8, 10]


def test_the_lowest_failure_bounds_it() -> None:
    search = RateSearch(1, 0.1)
    lucky = {1.0: True, 2.0: False, 4.0: True}
    assert search.found(lucky) == 1.0
    assert search.next_rate(lucky) == 1.41
    assert search.found({1.0: False}) is None


@given(st.floats(0.01, 10_000), st.floats(0.1, 100), st.sampled_from([0.02, 0.05, 0.2]))
def test_what_is_found_is_within_the_resolution(limit: float, first: float, share: float) -> None:
    search = RateSearch(first, share)
    tried: dict[float, bool] = {}
    while (rate := search.next_rate(tried)) is not None:
        tried[rate] = rate <= limit
    found = search.found(tried)
    assert found is not None
    assert found <= limit < found * (1 + share) * 1.005
    assert len(tried) < 40
