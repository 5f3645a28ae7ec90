"""The distribution of one quantity in each dataset, as one chart."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from s2l.reports import palette
from s2l.reports.chart_style import NUMBER, Spec, rows, specification
from s2l.workloads.stats.distribution import Distribution
from s2l.workloads.stats.stats_table import figure

COLOURS: Final = (palette.STREAM, palette.WAIT, palette.INK, palette.MUTED)
DASHES: Final = ((1, 0), (6, 4), (2, 3), (10, 3))
_LOG_FROM: Final = 50.0
"""Where the largest value is so many times the smallest, the axis is logarithmic."""


def distribution_chart(named: Sequence[tuple[str, Distribution]], title: str) -> Spec | None:
    """Share of values up to x, one line a dataset; None where no dataset's values differ."""
    shown = [(name, one) for name, one in named if one.n and one.min != one.max]
    if not shown:
        return None
    values = [row for name, one in shown for row in _steps(name, one)]
    names = [name for name, _ in named]
    domain, n = alt.Scale(domain=names, range=list(_repeated(COLOURS, len(names)))), len(names)
    dashes = alt.Scale(domain=names, range=[list(d) for d in _repeated(DASHES, n)])
    legend = alt.Legend(symbolType="stroke", symbolSize=500, labelLimit=360) if n > 1 else None
    chart = (
        alt.Chart(rows(values))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=_value_axis(title, [one for _, one in shown]),
            y=alt.Y("share:Q", title="share up to x", axis=alt.Axis(format="%")),
            color=alt.Color("dataset:N", scale=domain, legend=legend),
            strokeDash=alt.StrokeDash("dataset:N", scale=dashes, legend=legend),
            tooltip=_TOOLTIP,
        )
    )
    return specification(alt.layer(chart), 220)


_TOOLTIP: Final = [
    alt.Tooltip("dataset:N"),
    alt.Tooltip("text:N", title="value"),
    alt.Tooltip("share:Q", title="this much or less", format=".1%"),
]


def _steps(name: str, one: Distribution) -> list[dict[str, Any]]:
    return [
        {"dataset": name, "value": value, "share": share, "text": f"{figure(value)} {one.unit}"}
        for value, share in one.curve
    ]


def _value_axis(title: str, shown: Sequence[Distribution]) -> alt.X:
    return alt.X("value:Q", title=title, scale=_scale(shown), axis=alt.Axis(format=NUMBER))


def _scale(shown: Sequence[Distribution]) -> alt.Scale:
    low = min(one.min or 0.0 for one in shown)
    high = max(one.max or 0.0 for one in shown)
    logarithmic = low > 0 and high / low >= _LOG_FROM
    return alt.Scale(type="log", nice=False) if logarithmic else alt.Scale(zero=True)


def _repeated(values: Sequence[Any], n: int) -> list[Any]:
    return [values[i % len(values)] for i in range(n)]
