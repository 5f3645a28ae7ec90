"""How a context goes on from the one before it."""

from s2l.workloads.context import common_prefix


def test_common_prefix() -> None:
    assert common_prefix("abc", "abd") == 2
    assert common_prefix([1, 2], [1, 2, 3]) == 2
    assert common_prefix((), ("a",)) == 0
    assert common_prefix(("a",), ("b",)) == 0
    assert common_prefix((1, 2), [1, 3]) == 1
