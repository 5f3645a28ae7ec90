"""The distribution of a latency in each delivery: the share of values at least so large."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import altair as alt
import numpy as np

from s2l.reports.chart_style import (
    DASHES,
    DELIVERIES,
    NUMBER,
    Spec,
    delivery_colour,
    delivery_lines,
    rounded,
    rows,
    specification,
)
from s2l.reports.metrics import Floats
from s2l.reports.thinning import thinned
from s2l.reports.units import Unit, duration
from s2l.workloads.plural import counted

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


@dataclass(frozen=True, slots=True)
class Measured:
    """What is measured: the ``name`` of a value and what the values are counted by."""

    name: str
    of: str


TTFT: Final = Measured("TTFT", "request")
CHUNK_GAP: Final = Measured("gap", "gap")


def ttft_ccdf(ttfts: Mapping[str, Floats]) -> CcdfChart | None:
    """Of ``ttft_s`` of the successes by delivery; None without any."""
    return ccdf(ttfts, TTFT)


def ccdf(found: Mapping[str, Floats], what: Measured, limit: int = POINT_LIMIT) -> CcdfChart | None:
    """Share of values that are at least x, per delivery, on logarithmic axes; None without any.

    Args:
        found: seconds by delivery.
        what: they are.
        limit: of points per delivery.
    """
    positive = {name: np.sort(values[values > 0]) for name, values in found.items()}
    most = max((values.size for values in positive.values()), default=0)
    if most == 0:
        return None
    unit = Unit.fitting(float(values.max()) for values in positive.values() if values.size)
    points = [p for name, values in positive.items() for p in _steps(name, values, unit, limit)]
    base = alt.Chart(rows(points)).encode(
        x=_value_axis(positive, unit, what), y=_share_axis(most, what), tooltip=_tooltip(what)
    )
    present = [name for name, values in positive.items() if values.size]
    chart = alt.layer(*_marks(base, present, with_dots=most <= DOT_LIMIT))
    return CcdfChart(specification(chart, 280), _remarks(found, positive, what, limit))


def _tooltip(what: Measured) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("delivery:N"),
        alt.Tooltip("text:N", title=what.name),
        alt.Tooltip("share:Q", title="this slow or slower", format=".2%"),
    ]


_WAIT_DASHES: Final = {"test": "datum.delivery === 'wait'", "value": DASHES[1]}


def _marks(base: alt.Chart, present: list[str], *, with_dots: bool) -> list[alt.Chart]:
    """Lines told apart by dash and, when there are few points, dots told apart by shape."""
    lines = base.mark_line(interpolate="step-before", strokeWidth=2, clip=True)
    if not with_dots:
        return [lines.encode(**delivery_lines(present))]
    shapes = alt.Scale(domain=DELIVERIES, range=["circle", "square"])
    legend = alt.Legend(values=present)
    shape = alt.Shape("delivery:N", scale=shapes, legend=legend)
    # A dash in the legend would draw dashed outlines around the symbols.
    dashed = alt.StrokeDashValue(value=DASHES[0], condition=_WAIT_DASHES)
    dots = base.mark_point(filled=True, size=46, opacity=1, clip=True)
    colour = delivery_colour(legend)
    return [lines.encode(strokeDash=dashed, color=colour), dots.encode(shape=shape, color=colour)]


def _value_axis(positive: Mapping[str, Floats], unit: Unit, what: Measured) -> alt.X:
    """Logarithmic, with some room beside the extremes, and wide enough for one value."""
    ends = [end for values in positive.values() if values.size for end in (values[0], values[-1])]
    domain = [min(ends) * unit.per_s / 1.1, max(ends) * unit.per_s * 1.1]
    scale = alt.Scale(type="log", nice=False, domain=domain)
    axis = alt.Axis(format=NUMBER, tickCount=6, labelOverlap="greedy")
    title = f"{what.name[0].upper()}{what.name[1:]}, {unit.name} (log scale)"
    return alt.X("value:Q", scale=scale, axis=axis).title(title)


def _share_axis(most: int, what: Measured) -> alt.Y:
    slow = "slow" if what is TTFT else "long"
    title = f"{what.of.capitalize()}s at least this {slow}"
    if most < LOG_SHARE_FROM:
        linear = alt.Axis(format="~%", tickCount=5)
        return alt.Y("share:Q", scale=alt.Scale(domain=[0, 1]), axis=linear).title(title)
    decades = [10.0**-power for power in range(math.ceil(math.log10(most)) + 1)]
    axis = alt.Axis(format="~%", values=decades)
    scale = alt.Scale(type="log", domain=[1 / most, 1])
    return alt.Y("share:Q", scale=scale, axis=axis).title(title)


def _steps(delivery: str, ordered: Floats, unit: Unit, limit: int) -> list[dict[str, Any]]:
    kept = thinned(ordered.size, limit)
    shares = 1 - kept / max(ordered.size, 1)
    return [
        {
            "delivery": delivery,
            "value": rounded(value * unit.per_s),
            "share": rounded(share),
            "text": duration(value),
        }
        for value, share in zip(ordered[kept].tolist(), shares.tolist(), strict=True)
    ]


def _remarks(
    found: Mapping[str, Floats], positive: Mapping[str, Floats], what: Measured, limit: int
) -> tuple[str, ...]:
    most = max(values.size for values in positive.values())
    remarks = [f"Each point is one {what.of}."] if most <= DOT_LIMIT else []
    not_positive = sum(int((values <= 0).sum()) for values in found.values())
    if not_positive:
        verb = "has" if not_positive == 1 else "have"
        times = counted(not_positive, "time")
        remarks.append(f"{times} of zero or less {verb} no place on a log axis.")
    if any(values.size > limit for values in positive.values()):
        remarks.append(
            f"Drawn with at most {limit} points per delivery; the fastest and the slowest"
            f" {what.of}s are all kept."
        )
    return tuple(remarks)
