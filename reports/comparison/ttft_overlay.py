"""TTFT of several runs in one chart, for each delivery."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import altair as alt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s2l.reports import palette
from s2l.reports.chart_style import DELIVERIES, NUMBER, Spec, rows, specification
from s2l.reports.metrics import Floats, succeeded, ttft_s
from s2l.reports.moments import final_moment, final_rows
from s2l.reports.thinning import thinned
from s2l.reports.units import Unit, duration

POINT_LIMIT: Final = 400
COLOURS: Final = (palette.STREAM, palette.WAIT, palette.INK, palette.MUTED)
DASHES: Final = ([1, 0], [6, 4], [2, 3], [10, 3])


@dataclass(frozen=True, slots=True)
class Overlay:
    """One delivery's chart."""

    delivery: str
    spec: Spec


def overlays(named: Sequence[tuple[str, pa.Table]]) -> list[Overlay]:
    """A chart for each delivery in which at least two of the runs produced a token; none for
    sweeps, whose rates would be one heap, nor for runs that asked at different moments.

    Args:
        named: the requests of each run, under the name that the chart shows.
    """
    if any(len(table["rate"].unique()) > 1 for _, table in named):
        return []
    if len({final_moment(table) for _, table in named}) > 1:
        return []
    named = [(name, final_rows(table)) for name, table in named]
    found = []
    for delivery in DELIVERIES:
        ttfts = {name: _ordered(table, delivery) for name, table in named}
        ttfts = {name: values for name, values in ttfts.items() if values.size}
        if len(ttfts) > 1:
            found.append(Overlay(delivery, _chart(ttfts)))
    return found


def _ordered(requests: pa.Table, delivery: str) -> Floats:
    """The positive times of a delivery's successes."""
    values = ttft_s(succeeded(requests.filter(pc.equal(requests["delivery"], delivery))))
    return np.sort(values[values > 0])


def _chart(ttfts: dict[str, Floats]) -> Spec:
    unit = Unit.fitting(float(values.max()) for values in ttfts.values())
    pooled = np.concatenate(list(ttfts.values())) * unit.per_s
    scale = alt.Scale(type="log", nice=False, domain=[pooled.min() / 1.1, pooled.max() * 1.1])
    axis = alt.Axis(format=NUMBER, tickCount=6, labelOverlap="greedy")
    names = list(ttfts)
    colour = alt.Scale(domain=names, range=[COLOURS[at % len(COLOURS)] for at in range(len(names))])
    dash = alt.Scale(domain=names, range=[_dash(at) for at in range(len(names))])
    legend = alt.Legend(symbolType="stroke", symbolSize=500)
    lines = (
        alt.Chart(
            rows([row for name, values in ttfts.items() for row in _steps(name, values, unit)])
        )
        .mark_line(interpolate="step-before", strokeWidth=2)
        .encode(
            x=alt.X("ttft:Q", scale=scale, axis=axis).title(f"TTFT, {unit.name} (log scale)"),
            y=_share_axis(max(values.size for values in ttfts.values())),
            color=alt.Color("run:N", scale=colour, legend=legend),
            strokeDash=alt.StrokeDash("run:N", scale=dash, legend=legend),
            tooltip=[
                alt.Tooltip("run:N"),
                alt.Tooltip("text:N", title="TTFT"),
                alt.Tooltip("share:Q", title="this slow or slower", format=".2%"),
            ],
        )
    )
    return specification(alt.layer(lines), 260)


def _dash(at: int) -> list[int]:
    """Colours begin anew after the last one, and then with another dash each."""
    return list(DASHES[(at // len(COLOURS) + at) % len(DASHES)])


def _share_axis(most: int) -> alt.Y:
    title = "Requests at least this slow"
    if most < 100:
        return alt.Y("share:Q", axis=alt.Axis(format="~%"), scale=alt.Scale(domain=[0, 1])).title(
            title
        )
    decades = [10.0**-power for power in range(int(np.ceil(np.log10(most))) + 1)]
    axis = alt.Axis(format="~%", values=decades)
    return alt.Y("share:Q", axis=axis, scale=alt.Scale(type="log", domain=[1 / most, 1])).title(
        title
    )


def _steps(name: str, ordered: Floats, unit: Unit) -> list[dict[str, Any]]:
    kept = thinned(ordered.size, POINT_LIMIT)
    shares = 1 - kept / ordered.size
    return [
        {"run": name, "ttft": value * unit.per_s, "share": share, "text": duration(value)}
        for value, share in zip(ordered[kept].tolist(), shares.tolist(), strict=True)
    ]
