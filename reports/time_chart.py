"""Charts over the time of a run: a line for each delivery, both from the start of their pass."""

from collections.abc import Mapping
from typing import Any, Final, Literal

import altair as alt

from s2l.reports.chart_style import NUMBER, Spec, delivery_lines, rounded, rows, specification
from s2l.reports.series import Series

_HEIGHT: Final = 180


def time_chart(
    lines: Mapping[str, Series], title: str, *, share: bool = False, steps: bool = False
) -> Spec | None:
    """Values over time by delivery; None where there are none, or all are of one moment.

    Args:
        lines: by delivery.
        title: of the vertical axis, with its unit.
        share: whether the values are shares, shown in per cent up to 1.
        steps: whether a value holds until the next one.
    """
    present = [name for name, line in lines.items() if line.values.size]
    moments = {moment for name in present for moment in lines[name].time_s.tolist()}
    if len(moments) < 2:
        return None
    points = [point for name in present for point in _points(name, lines[name])]
    flat = not any(point["value"] for point in points)
    # A line at nothing would lie in the middle of an axis that has but one value.
    scale = alt.Scale(domain=[0, 1]) if share or flat else alt.Scale(zero=True)
    ticks = {"values": [0, 1]} if flat and not share else {"tickCount": 4}
    axis = alt.Axis(format="~%" if share else NUMBER, **ticks)
    base = alt.Chart(rows(points)).encode(
        x=alt.X("s:Q", scale=alt.Scale(nice=False), axis=alt.Axis(tickCount=6)).title(
            "Time since the pass began, s"
        ),
        y=alt.Y("value:Q", scale=scale, axis=axis).title(title),
        tooltip=[
            alt.Tooltip("delivery:N"),
            alt.Tooltip("s:Q", title="time, s", format=",.1f"),
            alt.Tooltip("value:Q", title=title, format=".1%" if share else NUMBER),
        ],
        **delivery_lines(present),
    )
    interpolate: Literal["step-after", "linear"] = "step-after" if steps else "linear"
    line = base.mark_line(strokeWidth=1.5, interpolate=interpolate, clip=True)
    return specification(alt.layer(line), _HEIGHT)


def _points(delivery: str, line: Series) -> list[dict[str, Any]]:
    return [
        {"delivery": delivery, "s": rounded(s), "value": rounded(value)}
        for s, value in zip(line.time_s.tolist(), line.values.tolist(), strict=True)
    ]
