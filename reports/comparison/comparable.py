"""Whether two runs can be compared at all, and what of that cannot be checked."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.replayer.run import RunError
from s2l.reports.attainment import sent_mask
from s2l.reports.comparison.alignment import Aligned
from s2l.reports.comparison.side import Side
from s2l.reports.metrics import Floats, column
from s2l.reports.run_log import intended_times_known
from s2l.reports.units import percent
from s2l.workloads.plural import counted

TIME_TOLERANCE_US: Final = 1_000
TOKEN_TOLERANCE: Final = 0.02
_SHARED: Final = {
    "delivery": "delivery",
    "query_id": "query",
    "rate": "offered rate",
    "answer_at": "moment of the question",
}


class NotComparable(RunError):
    """Two runs that did not do the same work. Its text is one line that names all reasons."""


def check_comparable(
    base: Side, other: Side, aligned: Sequence[Aligned], token_tolerance: float = TOKEN_TOLERANCE
) -> tuple[list[Aligned], list[str]]:
    """The conditions that both runs have, and remarks on what is left out or not known.

    Raises:
        NotComparable: they replayed another trace, at other times, or with other prompts.
    """
    shared = [one for one in aligned if len(one)]
    reasons, remarks = _trace(base, other)
    if not shared:
        reasons.append(_nothing_shared(base, other))
    remarks += _left_out(aligned)
    timed = intended_times_known(base.info) and intended_times_known(other.info)
    if not timed:
        remarks.append("One of them does not say when requests were due: schedules not compared.")
    for one in shared:
        reasons += _planned(one) if timed else []
        reasons += _schedule(one) if timed else []
        reasons += _prompts(one, token_tolerance)
        remarks += _unknown_prompts(one)
        remarks += _unsent(one)
    if reasons:
        names = f"{base.path} and {other.path}"
        raise NotComparable(f"{names} cannot be compared: {'; '.join(dict.fromkeys(reasons))}")
    return shared, remarks


def _trace(base: Side, other: Side) -> tuple[list[str], list[str]]:
    one, two = base.info.trace, other.info.trace
    if not one.sha256 or not two.sha256:
        return [], ["One of them does not say which trace it replayed: queries paired by id alone."]
    if one.sha256 == two.sha256:
        return [], []
    named = f"{one.name} (sha256 {one.sha256[:12]}), {two.name} (sha256 {two.sha256[:12]})"
    return [f"other traces: {named}"], []


def _nothing_shared(base: Side, other: Side) -> str:
    """Which of what pairs requests is different in all of them."""
    tables = [side.requests for side in (base, other)]
    for name, what in _SHARED.items():
        sides = [set(table[name].to_pylist()) for table in tables]
        if not sides[0] & sides[1]:
            return f"no {what} in common ({' and '.join(_some(side) for side in sides)})"
    return "no query in common in the same delivery, at the same rate"


def _some(values: set[Any]) -> str:
    """Up to three of them."""
    named = sorted(_shown(value) for value in values)
    more = [f"{len(named) - 3:,} more"] if len(named) > 3 else []
    return ", ".join(named[:3] + more) or "nothing"


def _shown(value: Any) -> str:
    if value is None:
        return "none stated"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _left_out(aligned: Sequence[Aligned]) -> list[str]:
    """Conditions that only one run has."""
    return [
        f"Only {'the base' if one.only_base else 'the other run'} has {one.condition}: left out."
        for one in aligned
        if not len(one)
    ]


def _planned(one: Aligned) -> list[str]:
    if not one.only_base and not one.only_other:
        return []
    return [
        f"{one.condition}: other requests were planned ({len(one)} in both, {one.only_base} only "
        f"in the first, {one.only_other} only in the second)"
    ]


def _schedule(one: Aligned) -> list[str]:
    """Intended starts within their pass, and how long the contexts took to come."""
    starts = _largest(_since_first(one.base), _since_first(one.other))
    dues = _largest(_due_after_start(one.base), _due_after_start(one.other))
    found = []
    if starts > TIME_TOLERANCE_US:
        found.append(f"{one.condition}: another schedule (starts differ by up to {_ms(starts)})")
    if dues > TIME_TOLERANCE_US:
        found.append(f"{one.condition}: contexts came at other times (differ by up to {_ms(dues)})")
    return found


def _prompts(one: Aligned, tolerance: float) -> list[str]:
    base, other = _prompt_tokens(one)
    if not base.size or not base.sum():
        return []
    differ = float(np.abs(other - base).sum() / base.sum())
    if differ <= tolerance:
        return []
    return [
        f"{one.condition}: other prompt token counts (they differ by {percent(differ)}, "
        f"{percent(tolerance)} allowed), as of another tokenizer, context budget or model; "
        "--token-tolerance allows more"
    ]


def _unknown_prompts(one: Aligned) -> list[str]:
    known, both = _prompt_tokens(one)[0].size, _both_succeeded(one).sum()
    if known == both:
        return []
    pairs = counted(int(both - known), "pair")
    return [f"{one.condition}: the prompt tokens of {pairs} are not known, so not compared."]


def _unsent(one: Aligned) -> list[str]:
    counts = [int((~sent_mask(table)).sum()) for table in (one.base, one.other)]
    if not any(counts):
        return []
    return [
        f"{one.condition}: of {len(one):,} requests {counts[0]:,} were not sent in the base and "
        f"{counts[1]:,} in the other run; shares of successes and of attainment are of those that "
        "both sent."
    ]


def _prompt_tokens(one: Aligned) -> tuple[Floats, Floats]:
    """Of the pairs that succeeded and say them on both sides."""
    sides = [column(table, "prompt_tokens") for table in (one.base, one.other)]
    known = _both_succeeded(one) & ~np.isnan(sides[0]) & ~np.isnan(sides[1])
    return sides[0][known], sides[1][known]


def _both_succeeded(one: Aligned) -> Any:
    errors = [table["error_type"].is_null() for table in (one.base, one.other)]
    return np.asarray(pc.and_(*errors), dtype=np.bool_)


def _since_first(requests: pa.Table) -> Floats:
    """Intended start since the first one of the same repeat."""
    starts, repeats = column(requests, "start_intended_us"), column(requests, "repeat")
    codes = np.unique(np.nan_to_num(repeats), return_inverse=True)[1]
    first = np.full(codes.max() + 1, np.inf)
    np.minimum.at(first, codes, starts)
    return np.asarray(starts - first[codes], dtype=np.float64)


def _due_after_start(requests: pa.Table) -> Floats:
    return column(requests, "context_intended_us") - column(requests, "start_intended_us")


def _largest(base: Floats, other: Floats) -> float:
    return float(np.abs(other - base).max(initial=0.0))


def _ms(microseconds: float) -> str:
    return f"{microseconds / 1e3:,.1f} ms"
