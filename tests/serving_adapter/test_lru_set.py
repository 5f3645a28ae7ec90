"""The mock's set of blocks against a dictionary in the order of use."""

import random
from collections import OrderedDict

import pytest

from s2l.serving_adapter.mock.lru_set import LruSet


@pytest.mark.parametrize("most", [3, 40, 5_000])
def test_it_is_a_dictionary_in_the_order_of_use(most: int) -> None:
    draw, ours = random.Random(most), LruSet()
    right: OrderedDict[int, None] = OrderedDict()
    keys = [hash((n, "block")) for n in range(most * 2)]
    for _ in range(30_000):
        key, what = draw.choice(keys), draw.random()
        assert (key in ours) == (key in right)
        if what < 0.6:
            ours.use(key)
            right[key] = None
            right.move_to_end(key)
        elif what < 0.8:
            ours.discard(key)
            right.pop(key, None)
        elif right:
            assert ours.pop_oldest() == right.popitem(last=False)[0]
        assert len(ours) == len(right)
    while right:
        assert ours.pop_oldest() == right.popitem(last=False)[0]
    assert not ours
    with pytest.raises(IndexError):
        ours.pop_oldest()


def test_nothing_is_left_after_clearing() -> None:
    ours = LruSet()
    for key in range(1000):
        ours.use(key)
    ours.clear()
    assert not ours
    ours.use(7)
    assert ours.pop_oldest() == 7


def test_what_waits_to_be_looked_at_is_bounded() -> None:
    ours = LruSet()
    for n in range(10_000):
        ours.use(n)
        ours.discard(n)
    assert len(ours._oldest) <= 256


def test_parts_grow_one_after_another() -> None:
    """The keys of the largest part are twice those of the smallest, and each has a size of its own
    to within chance: dictionaries grow at sizes, so not together."""
    ours = LruSet()
    for n in range(256_000):
        ours.use(hash((n, "block")))
    sizes = [len(shard) for shard in ours._shards]
    assert 1.7 < sum(sizes[-32:]) / sum(sizes[:32]) < 2.1
    groups = [sum(sizes[at : at + 32]) for at in range(0, 256, 32)]
    assert groups == sorted(groups)
