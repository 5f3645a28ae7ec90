"""Quantities of each request in each delivery as sorted curves: gains, and shares of prompts."""

from collections.abc import Mapping
from typing import Any, Final

import altair as alt
import numpy as np

from s2l.reports import palette
from s2l.reports.chart_style import NUMBER, Spec, delivery_lines, rounded, rows, specification
from s2l.reports.metrics import Floats
from s2l.reports.thinning import thinned
from s2l.reports.units import percent, times

POINT_LIMIT: Final = 300
_DOT_LIMIT: Final = 100


def gain_chart(gains: Floats) -> Spec | None:
    """Every query's gain, smallest first, on a logarithmic axis with a line at none.

    None where no query has one.
    """
    ordered = np.sort(gains[~np.isnan(gains)])
    if not ordered.size:
        return None
    kept = thinned(ordered.size, POINT_LIMIT)
    points = [
        {"share": rounded((rank + 0.5) / ordered.size), "gain": rounded(gain), "text": times(gain)}
        for rank, gain in zip(kept.tolist(), ordered[kept].tolist(), strict=True)
    ]
    low, high = min(ordered[0], 1.0) / 1.1, max(ordered[-1], 1.0) * 1.1
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    x = alt.X("share:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="~%", tickCount=5))
    axis = alt.Axis(format=NUMBER, tickCount=6, labelOverlap="greedy")
    base = alt.Chart(rows(points)).encode(
        x=x.title("Queries, by their gain"),
        y=alt.Y("gain:Q", scale=scale, axis=axis).title("TTFT wait / stream (log scale)"),
        tooltip=[
            alt.Tooltip("text:N", title="gain"),
            alt.Tooltip("share:Q", title="smaller gains", format=".1%"),
        ],
    )
    line = base.mark_line(strokeWidth=2, color=palette.STREAM, clip=True)
    dots = base.mark_point(filled=True, size=30, color=palette.STREAM, opacity=1, clip=True)
    none = alt.Chart(rows([{"gain": 1.0}])).mark_rule(strokeDash=[3, 3], color=palette.MUTED)
    marks = [line, dots] if ordered.size <= _DOT_LIMIT else [line]
    return specification(alt.layer(*marks, none.encode(y="gain:Q")), 240)


def hidden_chart(hidden: Mapping[str, Floats]) -> Spec | None:
    """Share of requests against how much of their prompt was prefilled when due, per delivery.

    None where no server said so.
    """
    known = {name: np.sort(values[~np.isnan(values)]) for name, values in hidden.items()}
    present = [name for name, values in known.items() if values.size]
    if not present:
        return None
    points = [row for name in present for row in _steps(name, known[name])]
    share = alt.Axis(format="~%", tickCount=5)
    base = alt.Chart(rows(points)).encode(
        x=alt.X("hidden:Q", scale=alt.Scale(domain=[0, 1]), axis=share).title(
            "Prompt prefilled when the context was due"
        ),
        y=alt.Y("share:Q", scale=alt.Scale(domain=[0, 1]), axis=share).title(
            "Requests with at least as much"
        ),
        tooltip=[
            alt.Tooltip("delivery:N"),
            alt.Tooltip("text:N", title="prefilled"),
            alt.Tooltip("share:Q", title="as much or more", format=".1%"),
        ],
        **delivery_lines(present),
    )
    return specification(
        alt.layer(base.mark_line(interpolate="step-before", strokeWidth=2, clip=True)), 220
    )


def _steps(delivery: str, ordered: Floats) -> list[dict[str, Any]]:
    kept = thinned(ordered.size, POINT_LIMIT)
    steps = [
        {
            "delivery": delivery,
            "hidden": rounded(min(max(value, 0.0), 1.0)),
            "share": rounded(1 - rank / ordered.size),
            "text": percent(value),
        }
        for rank, value in zip(kept.tolist(), ordered[kept].tolist(), strict=True)
    ]
    # From nothing to the least there is, and from the most down to none.
    first = {**steps[0], "hidden": 0.0, "share": 1.0}
    return [first, *steps, {**steps[-1], "share": 0.0}]
