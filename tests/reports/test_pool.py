import json
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from s2l.replayer.run import CHUNK_SCHEMA, Run
from s2l.reports.life import Life
from s2l.reports.page import RunView
from s2l.reports.pool import Pool, Stay
from s2l.reports.pool_chart import LASTS, POSITION_LIMIT, REPLACED, pool_chart
from s2l.reports.pool_view import PoolView


def _life(synthetic: ModuleType, pools: list[list[str]], *more: dict[str, Any]) -> Life:
    times = [100_000 * (n + 1) for n in range(len(pools))]
    rows = [*synthetic.pool_chunks("stream-0", 0, times, pools), *more]
    return Life.of(synthetic.request(), pa.Table.from_pylist(rows, schema=CHUNK_SCHEMA))


def _append(doc_ids: list[str] | None) -> dict[str, Any]:
    times = {"arrival_intended_us": 300_000, "send_intended_us": 300_000}
    ids = {"request_id": "stream-0", "seq": 2, "kind": "append", "doc_ids": doc_ids}
    return times | ids | {"context_tokens": 320, "kept_tokens": 240}


@pytest.fixture
def life(synthetic: ModuleType) -> Life:
    """a b c at 0.1 s, a c b at 0.2 s, d added at 0.3 s; due at 1 s, first token at 1.2 s."""
    return _life(synthetic, [["a", "b", "c"], ["a", "c", "b"]], _append(["d"]))


def test_a_moved_document_is_thrown_away_and_put_again(life: Life) -> None:
    pool = Pool.of(life)
    assert pool is not None
    assert pool.numbers() == {"a": 1, "b": 2, "c": 3, "d": 4}
    assert [(u.kept, u.thrown_away, u.reuse) for u in pool.updates] == [
        (0, 0, None),
        (1, 2, 1 / 3),
        (3, 0, None),
    ]
    assert list(pool.stays()) == [
        Stay("b", 1, 0.1, 0.2, lasts=False),
        Stay("c", 2, 0.1, 0.2, lasts=False),
        Stay("a", 0, 0.1, 1.2, lasts=True),
        Stay("c", 1, 0.2, 1.2, lasts=True),
        Stay("b", 2, 0.2, 1.2, lasts=True),
        Stay("d", 3, 0.3, 1.2, lasts=True),
    ]


def test_the_same_document_is_put_again_behind_one_that_changed(synthetic: ModuleType) -> None:
    pool = Pool.of(_life(synthetic, [["a", "b"], ["c", "b"], ["c"]]))
    assert pool is not None
    assert [(s.document, s.start_s, s.end_s) for s in pool.stays()] == [
        ("a", 0.1, 0.2),
        ("b", 0.1, 0.2),
        ("b", 0.2, 0.3),
        ("c", 0.2, 1.2),
    ]


def test_rows_of_the_table(life: Life) -> None:
    view = PoolView.of((life,))
    assert view is not None
    assert [(r.time, r.kind, r.kept, r.put, r.thrown_away, r.reuse) for r in view.rows] == [
        ("0.100", "replace", "none", "1 2 3", "0", "n/a"),
        ("0.200", "replace", "1", "3 2", "2", "33.3 %"),
        ("0.300", "append", "1 3 2", "4", "0", "n/a"),
    ]


def test_no_picture_without_a_change_or_without_names(synthetic: ModuleType) -> None:
    assert PoolView.of((_life(synthetic, [["a"], ["a", "b"]], _append(["c"])),)) is None
    assert PoolView.of((_life(synthetic, [["a"], ["b"]], _append(None)),)) is None
    assert PoolView.of((_life(synthetic, []),)) is None
    assert PoolView.of(()) is None


def test_an_update_at_the_last_moment_has_room() -> None:
    pool = Pool((), due_s=100.0, end_s=100.1)
    assert '"domain": [0, 106.0]' in json.dumps(pool_chart(pool))


def test_more_places_than_are_drawn(synthetic: ModuleType) -> None:
    pools = [[f"{start}-{n}" for n in range(POSITION_LIMIT + 5)] for start in "ab"]
    view = PoolView.of((_life(synthetic, pools),))
    assert view is not None
    assert view.places_left_out == 5
    text = json.dumps(view.chart)
    assert text.count(f'"fate": "{LASTS}"') == text.count(f'"fate": "{REPLACED}"') == POSITION_LIMIT


def test_the_page_draws_the_delivery_that_replaces(changing: Run) -> None:
    view = RunView.of(changing)
    assert view.life is not None
    assert view.life.pool is not None
    assert len(view.life.pool.rows) == 9
    assert len(view.updates()) == 5
