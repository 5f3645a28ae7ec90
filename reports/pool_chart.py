"""How one query's context changes over time, as a chart: a bar for each stay of a document."""

from dataclasses import replace
from typing import Any, Final

import altair as alt

from s2l.reports import palette
from s2l.reports.chart_style import Spec, rows, specification
from s2l.reports.pool import Pool, Stay

POSITION_LIMIT: Final = 40
"""Places of the prompt in the chart, from the first on."""
_ROOM: Final = 0.06
"""At least this share of the time until the context is due follows it, so that an update at the
last moment can be seen."""
_HEIGHT: Final = 520
_ROW: Final = (8, 24)
"""The least and the most height of a place, in px."""
_TEXT_FROM: Final = 13
"""Places less high than this have no room for a number."""

LASTS: Final = "in the final prompt"
REPLACED: Final = "thrown away"
_FATES: Final = [LASTS, REPLACED]
_LEGEND: Final = alt.Legend(symbolType="square", symbolStrokeWidth=1)


def pool_chart(pool: Pool) -> Spec:
    """Place in the prompt against time, each document's number on its bars."""
    numbers = pool.numbers()
    pool = replace(pool, end_s=max(pool.end_s, pool.due_s * (1 + _ROOM)))
    values = [_row(stay, numbers) for stay in pool.stays() if _is_drawn(stay)]
    places = max((value["place"] for value in values), default=1)
    row = min(max(_HEIGHT // places, _ROW[0]), _ROW[1])
    base = alt.Chart(rows(values)).encode(x=_time_axis(pool), y=_place_axis(places, row))
    bars = base.mark_bar(height=row - 3, strokeWidth=1).encode(
        x2="end:Q", fill=_fill(), stroke=_outline(), tooltip=_TOOLTIP
    )
    layers = [bars, _due(pool)] if row < _TEXT_FROM else [bars, _texts(base), _due(pool)]
    return specification(alt.layer(*layers), row * places)


_TOOLTIP: Final = [
    alt.Tooltip("number:N", title="document"),
    alt.Tooltip("id:N", title="id"),
    alt.Tooltip("place:Q", title="place"),
    alt.Tooltip("at:N", title="time"),
    alt.Tooltip("fate:N"),
]


def _is_drawn(stay: Stay) -> bool:
    return stay.end_s > stay.start_s and stay.position < POSITION_LIMIT


def _row(stay: Stay, numbers: dict[str, int]) -> dict[str, Any]:
    return {
        "place": stay.position + 1,
        "s": stay.start_s,
        "end": stay.end_s,
        "number": str(numbers[stay.document]),
        "id": stay.document,
        "fate": LASTS if stay.lasts else REPLACED,
        "at": f"from {stay.start_s:.3f} s" + ("" if stay.lasts else f" to {stay.end_s:.3f} s"),
    }


def _time_axis(pool: Pool) -> alt.X:
    scale = alt.Scale(domain=[0, pool.end_s], nice=False)
    axis = alt.Axis(tickCount=10, grid=False)
    return alt.X("s:Q", scale=scale, axis=axis).title("Time since the query, s")


def _place_axis(places: int, row: int) -> alt.Y:
    every = 1 if row >= _TEXT_FROM else 5
    axis = alt.Axis(values=list(range(every, places + 1, every)), ticks=False, domain=False)
    return alt.Y("place:O", scale=alt.Scale(domain=list(range(1, places + 1))), axis=axis).title(
        "Place in the prompt"
    )


def _fill() -> alt.Fill:
    scale = alt.Scale(domain=_FATES, range=[palette.STREAM, palette.GRID])
    return alt.Fill("fate:N", scale=scale, legend=_LEGEND)


def _outline() -> alt.Stroke:
    scale = alt.Scale(domain=_FATES, range=[palette.STREAM, palette.MUTED])
    return alt.Stroke("fate:N", scale=scale, legend=_LEGEND)


def _texts(base: alt.Chart) -> alt.Chart:
    """The numbers, where the bar is wide enough for them at the width that the page has."""
    fits = "scale('x', datum.end) - scale('x', datum.s) > 7 * length(datum.number) + 5"
    on_fill = {"test": f"datum.fate === '{LASTS}'", "value": palette.PAPER}
    texts: alt.Chart = base.mark_text(fontSize=11, align="left", dx=5, tooltip=None).encode(
        text=alt.condition(fits, "number:N", alt.value("")),
        color=alt.ColorValue(palette.INK, condition=on_fill),
    )
    return texts


def _due(pool: Pool) -> alt.Chart:
    # By then only what lasts is there, so that paper on its bars can be seen.
    rule = alt.Chart(rows([{"s": pool.due_s}])).mark_rule(
        strokeDash=[4, 3], strokeWidth=1.5, color=palette.PAPER
    )
    due: alt.Chart = rule.encode(x="s:Q")
    return due
