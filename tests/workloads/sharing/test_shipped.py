"""The datasets that come with the program are as sound as a stranger's must be."""

from pathlib import Path

import pytest

from s2l.workloads.sharing.inspector import Inspector
from s2l.workloads.sharing.packaging import is_packaged
from s2l.workloads.trace import Trace

DATASETS = Path(__file__).parents[3] / "datasets"
SHIPPED = sorted(file.parent for file in DATASETS.glob("*/manifest.json"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_small_whole_and_with_a_card(path: Path) -> None:
    with Inspector() as inspector:
        inspector.check(path)
    trace = Trace.open(path)
    assert is_packaged(trace)
    assert trace.manifest.name == path.name
    assert trace.manifest.counts.finished_queries == trace.manifest.counts.queries == 40
    assert sum(entry.bytes for entry in trace.manifest.files) < 500_000
    assert "![Shares of values up to x](shape.svg)" in (path / "README.md").read_text()
