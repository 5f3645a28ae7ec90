"""``--fail-if "ttft_s.p95 > +5%"``: a change that is not to be let through."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from s2l.reports.comparison.change import METRICS, RELATIVE, Change
from s2l.reports.comparison.compare import BOTH, SHOWN, Comparison
from s2l.reports.comparison.words import change_text

_GATE: Final = re.compile(
    r"\s*(?:(?P<delivery>stream|wait)\s*[.:]\s*)?(?P<metric>[a-z0-9_]+)(?:\.(?P<level>p[0-9]+))?\s*"
    r"(?P<sign>[<>])\s*(?P<number>[+-]?[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[a-z%]*)\s*"
)
_EXAMPLE: Final = "ttft_s.p95 > +5%"
_TIMES: Final = {"s": 1.0, "ms": 1e-3}


class GateError(ValueError):
    """A condition that cannot be read. Its text is one line that says what would be right."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Fails where the change of ``metric`` (at ``level``) from the base is above, or below, a
    limit. ``unit`` is ``%`` (relative to the base), ``pp`` (percentage points of a share, or
    hundredths of a cosine), ``s`` or ``ms``. Without a ``delivery`` it fails where any condition
    does."""

    text: str
    delivery: str | None
    metric: str
    level: str | None
    above: bool
    limit: float
    unit: str


@dataclass(frozen=True, slots=True)
class GateResult:
    """What came of a gate in one condition of one comparison."""

    gate: str
    failed: bool
    says: str


def parse_gate(text: str) -> Gate:
    """Read ``[DELIVERY.]METRIC[.LEVEL] > LIMIT``, a limit in %, pp, s or ms.

    Raises:
        GateError: it cannot be read, or asks for what is not compared.
    """
    match = _GATE.fullmatch(text)
    if match is None:
        raise GateError(f"{text!r} is no condition; write it as {_EXAMPLE!r}")
    metric, level, unit = match["metric"], match["level"], match["unit"]
    if metric not in METRICS:
        raise GateError(f"{text!r}: no such metric; choose of {', '.join(METRICS)}")
    of_time, of_share = METRICS[metric].unit == "s", METRICS[metric].scale != RELATIVE
    levels = SHOWN if of_time else ("p50",) if metric == "streaming_gain" else ()
    if (level or "") not in (levels or ("",)):
        right = f"write {metric}.{levels[0]}" if levels else f"write {metric} alone"
        raise GateError(f"{text!r}: no such percentile is compared; {right}")
    right_units = ("pp",) if of_share else ("%", "s", "ms") if of_time else ("%",)
    if unit not in right_units:
        raise GateError(f"{text!r}: the limit of {metric} is in {' or '.join(right_units)}")
    limit = float(match["number"]) * _TIMES.get(unit, 0.01)
    return Gate(text.strip(), match["delivery"], metric, level, match["sign"] == ">", limit, unit)


def judge_gates(gates: Sequence[Gate], compared: Sequence[Comparison]) -> list[GateResult]:
    """Every gate against every comparison.

    The change itself is held against the limit, not its interval, which is printed beside it. A
    figure that is not there fails: what cannot be told has not passed.
    """
    return [_judged(gate, comparison) for comparison in compared for gate in gates]


def _judged(gate: Gate, compared: Comparison) -> GateResult:
    found = [
        (str(one.condition), change)
        for one in compared.conditions
        if gate.delivery is None or one.condition.delivery in (gate.delivery, BOTH)
        if (change := one.change(gate.metric, gate.level)) is not None
    ]
    name = f"{gate.text} ({compared.other.name})"
    if not found:
        return GateResult(name, True, "not measured in both runs")
    failed = [(where, change) for where, change in found if _fails(gate, change)]
    shown = failed or found
    said = "; ".join(f"{where}: {_said(gate, change)}" for where, change in shown)
    return GateResult(name, bool(failed), said)


def _fails(gate: Gate, change: Change) -> bool:
    value = _value(gate, change)
    return value is None or (value > gate.limit if gate.above else value < gate.limit)


def _value(gate: Gate, change: Change) -> float | None:
    if gate.unit not in _TIMES:
        return change.change
    return None if change.base is None or change.other is None else change.other - change.base


def _said(gate: Gate, change: Change) -> str:
    value = _value(gate, change)
    if value is None:
        return f"cannot be told: {change.n} pairs are too few"
    if gate.unit in _TIMES:
        return f"{value / _TIMES[gate.unit]:+.4g} {gate.unit} ({change_text(change)})"
    return change_text(change)
