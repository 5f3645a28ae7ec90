"""A comparison's figures as text cells, the same for the terminal, Markdown and the page."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from s2l.reports.comparison.change import METRICS, POINTS, Change
from s2l.reports.comparison.compare import ConditionChanges
from s2l.reports.comparison.side import Side
from s2l.reports.comparison.words import change_text
from s2l.reports.provenance import sentence
from s2l.reports.units import NOT_KNOWN, Unit, number, percent, times

SAYS: Final = {
    "better": "better",
    "worse": "worse",
    "none": "no clear difference",
    "unknown": "too few queries",
}
_TOKEN_RATES: Final = ("output_token_rate", "total_token_rate")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: in the base, in the other run, its change, and what that means."""

    label: str
    base: str
    other: str
    change: str
    verdict: str
    says: str
    n: int
    source: Change


def rows(one: ConditionChanges) -> list[Row]:
    """All figures of a condition; n/a where the sample cannot carry one."""
    pace = one.change("request_rate")
    return [_row(change, _verdict(change, pace)) for change in one.changes]


def _verdict(change: Change, pace: Change | None) -> str:
    """That of the change; ``changed`` for a rate of tokens that does not follow the requests'.

    Longer answers at the same pace are more tokens a second, and no better for it.
    """
    follows = pace is not None and pace.verdict == change.verdict
    if change.metric in _TOKEN_RATES and change.verdict in ("better", "worse") and not follows:
        return "changed"
    return change.verdict


def _says(change: Change, verdict: str) -> str:
    if change.change is None and change.base is not None and change.other is not None:
        return "the base is 0"
    if verdict == "changed":
        return "higher" if (change.change or 0) > 0 else "lower"
    return SAYS[verdict]


def _row(change: Change, verdict: str) -> Row:
    metric = METRICS[change.metric]
    label = metric.title if change.level is None else f"{metric.title} {change.level}"
    base, other = _pair(change)
    says = _says(change, verdict)
    return Row(label, base, other, change_text(change), verdict, says, change.n, change)


def _pair(change: Change) -> tuple[str, str]:
    metric = METRICS[change.metric]
    values = change.base, change.other
    if metric.unit == "s":
        unit = Unit.fitting(values)
        return unit.with_name(values[0]), unit.with_name(values[1])
    if metric.unit == "cosine":
        known = (NOT_KNOWN if value is None else f"{value:.3f}" for value in values)
        return next(known), next(known)
    shown = percent if metric.scale == POINTS else times if metric.unit == "x" else number
    return shown(values[0]), shown(values[1])


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that the runs say of themselves, and that is not the same in all of them."""

    label: str
    values: tuple[str, ...]


def differences(runs: list[Side]) -> list[Difference]:
    """What was different about the runs: server, model, settings, options, host, packages."""
    facts = [_facts(run) for run in runs]
    names = dict.fromkeys(name for one in facts for name in one)
    found = [
        Difference(name, tuple(one.get(name, "not stated") for one in facts)) for name in names
    ]
    return [one for one in found if len(set(one.values)) > 1]


def _facts(run: Side) -> dict[str, str]:
    info, target = run.info, run.info.target
    engine = f"{target.server} {target.server_version}".strip()
    known = {
        "model": target.model,
        "server": engine,
        "adapter": target.adapter,
        "target": "embedded" if target.embedded else target.url,
        "seed": str(info.seed),
        **_flat("setting", target.settings),
        **_flat("option", info.options),
        **_flat("host", info.host),
        **_flat("package", info.packages),
    }
    return {name: text for name, text in known.items() if text}


def _flat(kind: str, values: Mapping[str, Any]) -> dict[str, str]:
    return {
        f"{kind} {name}": sentence({"": value}).removeprefix(": ") for name, value in values.items()
    }
