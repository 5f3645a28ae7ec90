"""Ids by the million in little memory: nothing forgotten, nothing made up."""

import tracemalloc

from s2l.workloads.id_set import IdSet


def test_what_was_added_is_in_it_and_nothing_else_across_all_its_levels() -> None:
    ids = IdSet()
    for number in range(700_000):
        ids.add(f"query-{number}")
    assert len(ids) == 700_000
    assert all(f"query-{number}" in ids for number in range(0, 700_000, 101))
    assert not any(f"query-{number}" in ids for number in range(700_000, 707_000))


def test_an_update_takes_known_ids_too() -> None:
    ids = IdSet()
    ids.update(["a", "b", "a"])
    ids.update(["b", "c"])
    assert len(ids) == 3
    assert "c" in ids
    assert "" not in ids


def test_an_id_takes_little_more_than_its_digest() -> None:
    ids = IdSet()
    tracemalloc.start()
    for number in range(200_000):
        ids.add(f"document-{number:020}")
    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held_bytes / len(ids) < 50  # as strings in a set they would take over 100
