"""The embedded engine and one started by hand give the same results, by the same command."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.engine

OPTIONS = ("--queries", "3", "--qps", "0.5", "--time-scale", "2", "--max-tokens", "12")


def _answers(run: Path) -> dict[tuple[str, str], tuple[int, str]]:
    rows = pq.read_table(run / "requests.parquet").to_pylist()
    assert all(row["error_type"] is None for row in rows), rows
    return {
        (row["query_id"], row["delivery"]): (row["prompt_tokens"], row["output_text"])
        for row in rows
    }


def test_embedded_and_by_hand_are_the_same(  # type: ignore[no-untyped-def]
    s2l, crawled: Path, vllm: Any, tmp_path: Path
) -> None:
    replay = ("replay", crawled, *OPTIONS, "--context-tokens", "300", "--json")
    embedded = s2l(*replay, "--out", "embedded", timeout_s=400)
    assert embedded.code == 0, embedded.err
    by_hand = s2l(
        *replay, "--out", "by-hand", "--target", vllm.url, environment={"S2L_API_KEY": vllm.api_key}
    )
    assert by_hand.code == 0, by_hand.err
    first, second = _answers(tmp_path / "embedded"), _answers(tmp_path / "by-hand")
    assert first == second
    assert len(first) == 6
    for query_id, _ in first:
        assert first[query_id, "stream"] == first[query_id, "wait"]
    assert vllm.api_key not in (tmp_path / "by-hand" / "run.json").read_text()
    for result in (embedded, by_hand):
        summary = result.json()
        assert summary["gain"]["pairs"] == 3
        assert summary["gain"]["median"] > 1
