"""Comparisons as one JSON object."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from s2l.replayer.run import Validity
from s2l.reports.comparison.cells import Difference, differences, rows
from s2l.reports.comparison.compare import Comparison, ConditionChanges
from s2l.reports.comparison.gate import GateResult
from s2l.reports.comparison.side import Side
from s2l.reports.comparison.terminal import runs_of
from s2l.reports.comparison.words import letter, sentences

FORMAT: Final = "s2l-comparison/1"


@dataclass(frozen=True, slots=True)
class _Named:
    letter: str
    name: str
    model: str
    validity: Validity
    interrupted: bool


@dataclass(frozen=True, slots=True)
class _Compared:
    run: str
    sentences: list[str]
    conditions: list[dict[str, Any]]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Document:
    format: str
    runs: list[_Named]
    comparisons: list[_Compared]
    differences: list[Difference]
    gates: list[GateResult]


def comparison_json(compared: Sequence[Comparison], gates: Sequence[GateResult]) -> bytes:
    """Seconds and shares as numbers, unknown as null; runs by letter, the base being A."""
    runs = runs_of(compared)
    return msgspec.json.encode(
        _Document(
            FORMAT,
            [_named(position, run) for position, run in enumerate(runs)],
            [_compared(position, one) for position, one in enumerate(compared, start=1)],
            differences(runs),
            list(gates),
        )
    )


def _named(position: int, run: Side) -> _Named:
    info = run.info
    return _Named(letter(position), run.name, info.target.model, info.validity, info.interrupted)


def _compared(position: int, one: Comparison) -> _Compared:
    name = letter(position)
    conditions = [_condition(condition) for condition in one.conditions]
    return _Compared(name, sentences(one, "A", name), conditions, one.remarks)


def _condition(one: ConditionChanges) -> dict[str, Any]:
    """All of it, and of each change what it means."""
    changes = [msgspec.to_builtins(row.source) | {"verdict": row.verdict} for row in rows(one)]
    found: dict[str, Any] = msgspec.to_builtins(one)
    return found | {"changes": changes}
