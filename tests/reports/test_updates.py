import io
from collections.abc import Callable
from types import ModuleType
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from rich.console import Console

from s2l.replayer.run import CHUNK_SCHEMA, Run
from s2l.reports.page import RunView
from s2l.reports.percentiles import Distribution
from s2l.reports.summary import summarize, summary_json
from s2l.reports.terminal import print_summary
from s2l.reports.update_table import update_groups

MakeRun = Callable[..., Run]

POOLS = [["a", "b"], ["a", "c"], ["c", "a", "d", "e"]]


def _chunks(synthetic: ModuleType, *more: dict[str, Any]) -> pa.Table:
    """Three pools of documents of 80 tokens for stream-0, kept: none, the first, none."""
    rows = synthetic.pool_chunks("stream-0", 0, [100_000, 200_000, 300_000], POOLS)
    return pa.Table.from_pylist([*rows, *more], schema=CHUNK_SCHEMA)


@pytest.fixture
def small(synthetic: ModuleType, make_run: MakeRun) -> Run:
    """A query with three pools, one with two appends, one without context, one that failed."""
    append = {"request_id": "stream-1", "kind": "append", "context_tokens": 80, "kept_tokens": 0}
    times = {"arrival_intended_us": 0, "send_intended_us": 0}
    appends = [append | times | {"seq": seq} for seq in range(2)]
    of_failed = synthetic.pool_chunks("stream-3", 0, [1, 2], [["x"], ["y"]])
    rows = [
        synthetic.request(prompt_tokens=400, invalidated_tokens=240),
        synthetic.request(request_id="stream-1", query_id="q1", prompt_tokens=200),
        synthetic.request(request_id="stream-2", query_id="q2", prompt_tokens=40),
        synthetic.failed("timeout", request_id="stream-3", query_id="q3", invalidated_tokens=9),
    ]
    return make_run(*rows, chunks=_chunks(synthetic, *appends, *of_failed))


def _exactly(n: int, mean: float, low: float, p50: float, high: float) -> Distribution:
    return Distribution(n, mean, low, p50, None, None, None, None, high)


def test_updates_of_the_successes(small: Run) -> None:
    updates = summarize(small).deliveries[0].updates
    assert updates.replaced == 2
    assert updates.per_query == _exactly(3, 5 / 3, 0, 2, 3)
    assert updates.replacing_per_query == _exactly(3, 1, 0, 0, 3)
    assert updates.reuse == _exactly(2, 0.25, 0, 0.25, 0.5)
    assert updates.invalidated_tokens == _exactly(3, 80, 0, 0, 240)
    assert updates.prefill_work.max == 1.6
    assert updates.prefill_work.p50 == 1


def test_the_table_has_them_in_units(small: Run) -> None:
    cells = {group.title: group.rows[0].cells[0] for group in update_groups(summarize(small))}
    assert cells == {
        "Updates": "2",
        "Replacing updates": "0",
        "Reuse": "25.0",
        "Invalidated tokens": "0",
        "Prefill work": "1.00",
    }


def test_only_the_delivery_that_replaces_is_shown(changing: Run) -> None:
    groups = update_groups(summarize(changing))
    assert {row.delivery for group in groups for row in group.rows} == {"stream"}
    by_title = {group.title: group.rows[0] for group in groups}
    assert (by_title["Updates"].n, by_title["Updates"].cells[0]) == (12, "9")
    assert by_title["Reuse"].n == 12 * 8
    assert by_title["Reuse"].cells[3] == "n/a"  # p99 of 96


def test_all_formats_have_them(changing: Run) -> None:
    summary = summarize(changing)
    written = io.StringIO()
    print_summary(summary, Console(file=written, width=100))
    assert "Prefill work, x final prompt" in written.getvalue()
    stream, wait = msgspec.json.decode(summary_json(summary))["deliveries"]
    assert stream["updates"]["replaced"] == 96
    assert wait["updates"]["replaced"] == 0
    assert wait["updates"]["reuse"]["p50"] is None
    assert wait["updates"]["prefill_work"]["p50"] == 1
    total = stream["throughput"]["invalidated_tokens"]
    assert stream["updates"]["invalidated_tokens"]["mean"] == pytest.approx(total / 12)


def test_context_that_only_grows_shows_none_of_it(realistic: Run) -> None:
    view = RunView.of(realistic)
    assert view.updates() == []
    assert view.life is not None
    assert view.life.pool is None
    written = io.StringIO()
    print_summary(view.summary, Console(file=written, width=100))
    assert "Reuse" not in written.getvalue()


def test_tokens_thrown_away_without_a_replacement_are_shown(
    synthetic: ModuleType, make_run: MakeRun
) -> None:
    groups = update_groups(summarize(make_run(synthetic.request(invalidated_tokens=7))))
    assert {group.title: group.rows[0].n for group in groups}["Invalidated tokens"] == 1
