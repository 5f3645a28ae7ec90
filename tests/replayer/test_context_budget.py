"""Budgets are shared fairly and never exceeded."""

from hypothesis import given
from hypothesis import strategies as st

from s2l.replayer.context_budget import fair_shares


def test_known_shares() -> None:
    assert fair_shares([100, 100, 100], 60) == [20, 20, 20]
    assert fair_shares([10, 100, 100], 70) == [10, 30, 30]
    assert fair_shares([100, 10, 50], 1000) == [100, 10, 50]
    assert fair_shares([5, 5], 3) == [1, 2]
    assert fair_shares([], 10) == []
    assert fair_shares([0, 7], 5) == [0, 5]


@given(st.lists(st.integers(0, 500), max_size=20), st.integers(0, 3000))
def test_all_of_the_budget_is_used_and_no_more(lengths: list[int], budget: int) -> None:
    shares = fair_shares(lengths, budget)
    assert sum(shares) == min(budget, sum(lengths))
    assert all(0 <= share <= length for share, length in zip(shares, lengths, strict=True))
    cut = [share for share, length in zip(shares, lengths, strict=True) if share < length]
    assert not cut or max(shares) - min(cut) <= 1
