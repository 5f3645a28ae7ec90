"""The distribution of TTFT in each delivery, as one chart."""

import math
from dataclasses import dataclass
from typing import Any, Final

import altair as alt
import numpy as np

from s2l.reports.chart_style import COLOURS, DELIVERIES, Spec, rows, specification
from s2l.reports.metrics import Floats
from s2l.reports.thinning import thinned
from s2l.reports.units import Unit, counted, duration

POINT_LIMIT: Final = 400
"""Points per delivery in the chart."""
DOT_LIMIT: Final = 60
"""Up to so many points each one has a dot."""
LOG_SHARE_FROM: Final = 100
"""From so many points on the share axis is logarithmic, so that the tail can be read."""


@dataclass(frozen=True, slots=True)
class CcdfChart:
    """The chart's specification, and what to know of it."""

    spec: Spec
    remarks: tuple[str, ...]


def ttft_ccdf(ttfts: dict[str, Floats]) -> CcdfChart | None:
    """Share of requests whose TTFT is at least x, per delivery; None without any TTFT.

    Args:
        ttfts: ``ttft_s`` of the successes by delivery.
    """
    positive = {name: np.sort(found[found > 0]) for name, found in ttfts.items()}
    most = max((found.size for found in positive.values()), default=0)
    if most == 0:
        return None
    unit = Unit.fitting(float(found.max()) for found in positive.values() if found.size)
    values = [row for name, found in positive.items() for row in _steps(name, found, unit)]
    base = alt.Chart(rows(values)).encode(
        x=_time_axis(positive, unit), y=_share_axis(most), tooltip=_TOOLTIP
    )
    present = [name for name, found in positive.items() if found.size]
    chart = alt.layer(*_marks(base, present, with_dots=most <= DOT_LIMIT))
    return CcdfChart(specification(chart, 280), _remarks(ttfts, positive))


_TOOLTIP: Final = [
    alt.Tooltip("delivery:N"),
    alt.Tooltip("text:N", title="TTFT"),
    alt.Tooltip("share:Q", title="this slow or slower", format=".2%"),
]


_DASHES: Final = [[1, 0], [6, 4]]
_WAIT_DASHES: Final = {"test": "datum.delivery === 'wait'", "value": _DASHES[1]}


def _marks(base: alt.Chart, present: list[str], *, with_dots: bool) -> list[alt.Chart]:
    """Lines told apart by dash and, when there are few points, dots told apart by shape."""
    colour = alt.Color("delivery:N", scale=alt.Scale(domain=DELIVERIES, range=COLOURS))
    dashes = alt.Scale(domain=DELIVERIES, range=_DASHES)
    lines = base.mark_line(interpolate="step-before", strokeWidth=2)
    if not with_dots:
        long = alt.Legend(values=present, symbolType="stroke", symbolSize=500)
        dash = alt.StrokeDash("delivery:N", scale=dashes, legend=long)
        return [lines.encode(strokeDash=dash, color=colour)]
    shapes = alt.Scale(domain=DELIVERIES, range=["circle", "square"])
    shape = alt.Shape("delivery:N", scale=shapes, legend=alt.Legend(values=present))
    # A dash in the legend would draw dashed outlines around the symbols.
    dashed = alt.StrokeDashValue(value=_DASHES[0], condition=_WAIT_DASHES)
    dots = base.mark_point(filled=True, size=46, opacity=1)
    return [lines.encode(strokeDash=dashed, color=colour), dots.encode(shape=shape, color=colour)]


def _time_axis(positive: dict[str, Floats], unit: Unit) -> alt.X:
    """Logarithmic, with some room beside the extremes, and wide enough for one value."""
    pooled = np.concatenate(list(positive.values())) * unit.per_s
    scale = alt.Scale(type="log", nice=False, domain=[pooled.min() / 1.1, pooled.max() * 1.1])
    axis = alt.Axis(format="~g", tickCount=6, labelOverlap="greedy")
    return alt.X("ttft:Q", scale=scale, axis=axis).title(f"TTFT, {unit.name} (log scale)")


def _share_axis(most: int) -> alt.Y:
    title = "Requests at least this slow"
    if most < LOG_SHARE_FROM:
        linear = alt.Axis(format="~%", tickCount=5)
        return alt.Y("share:Q", scale=alt.Scale(domain=[0, 1]), axis=linear).title(title)
    decades = [10.0**-power for power in range(math.ceil(math.log10(most)) + 1)]
    axis = alt.Axis(format="~%", values=decades)
    scale = alt.Scale(type="log", domain=[1 / most, 1])
    return alt.Y("share:Q", scale=scale, axis=axis).title(title)


def _steps(delivery: str, ordered: Floats, unit: Unit) -> list[dict[str, Any]]:
    kept = thinned(ordered.size, POINT_LIMIT)
    shares = 1 - kept / max(ordered.size, 1)
    return [
        {"delivery": delivery, "ttft": value * unit.per_s, "share": share, "text": duration(value)}
        for value, share in zip(ordered[kept].tolist(), shares.tolist(), strict=True)
    ]


def _remarks(ttfts: dict[str, Floats], positive: dict[str, Floats]) -> tuple[str, ...]:
    most = max(found.size for found in positive.values())
    remarks = ["Each point is one request."] if most <= DOT_LIMIT else []
    not_positive = sum(int((found <= 0).sum()) for found in ttfts.values())
    if not_positive:
        verb = "has" if not_positive == 1 else "have"
        times = counted(not_positive, "time")
        remarks.append(f"{times} of zero or less {verb} no place on a log axis.")
    if any(found.size > POINT_LIMIT for found in positive.values()):
        remarks.append(
            f"Drawn with at most {POINT_LIMIT} points per delivery; the fastest and the slowest"
            " requests are all kept."
        )
    return tuple(remarks)
