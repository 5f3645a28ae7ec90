"""Runs that differ in what a test says, and nothing else."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from s2l.replayer.run import Run, Validity
from s2l.reports.comparison import resampling
from s2l.reports.comparison.change import Change
from s2l.reports.comparison.compare import Comparison

VALID = Validity(verdict="valid")
Rows = list[dict[str, Any]]
MakeNamed = Callable[..., Run]


@pytest.fixture(autouse=True)
def fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough for what is asserted here."""
    monkeypatch.setattr(resampling, "RESAMPLES", 200)


@pytest.fixture
def named(synthetic: ModuleType, tmp_path: Path) -> MakeNamed:
    """Writes rows as the run of that name; keyword arguments change its ``run.json``."""

    def make(name: str, rows: Rows, **changes: Any) -> Run:
        info = synthetic.run_info(**({"validity": VALID} | changes))
        table = synthetic.request_table(*rows)
        return Run.open(synthetic.write_run(tmp_path / name, table, info=info))

    return make


@pytest.fixture
def rows(synthetic: ModuleType) -> Callable[..., Rows]:
    """``n`` queries a second apart; TTFT is 100, 101, 102... ms, times ``factor``."""

    def make(n: int, factor: float = 1.0, delivery: str = "stream", **changes: Any) -> Rows:
        found = []
        for i in range(n):
            start = 5_000_000 + i * 1_000_000
            ttft = round((100_000 + 1_000 * i) * factor)
            first = start + 400_000 + ttft
            found.append(
                synthetic.request(
                    request_id=f"{delivery}-{i}",
                    query_id=f"q{i}",
                    delivery=delivery,
                    start_intended_us=start,
                    start_us=start,
                    context_intended_us=start + 400_000,
                    context_us=start + 400_000,
                    first_token_us=first,
                    last_token_us=first + 200_000,
                    end_us=first + 200_000,
                )
                | changes
            )
        return found

    return make


@pytest.fixture
def change_of() -> Callable[..., Change]:
    """One change of a comparison, which has to be there."""

    def found(compared: Comparison, metric: str, level: str | None = None, at: int = 0) -> Change:
        change = compared.conditions[at].change(metric, level)
        assert change is not None
        return change

    return found
