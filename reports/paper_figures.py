"""Figures for papers: one column wide (84 mm), vectors, and readable in black and white."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import altair as alt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import vl_convert

from s2l.replayer.run import Run, RunError
from s2l.reports import palette
from s2l.reports.chart_style import NUMBER, Spec
from s2l.reports.metrics import Floats, succeeded, ttft_s
from s2l.reports.moments import final_moment, final_rows, moment_text
from s2l.reports.paper_style import sized, specification
from s2l.reports.percentiles import LEVELS, percentile
from s2l.reports.request_metrics import light_requests
from s2l.reports.thinning import thinned
from s2l.reports.units import Unit
from s2l.workloads.durable import write_durably

_POINT_LIMIT: Final = 2_000
_LEVELS: Final = ("p50", "p95", "p99")
_SIDES: Final = ("stream", "wait")


@dataclass(frozen=True, slots=True)
class _Points:
    """One line: percentiles of a delivery against the offered rate."""

    delivery: str
    level: str
    rate_qps: float
    value_s: float


def write_figure(name: str, runs: Sequence[Run], path: Path) -> None:
    """Write one of ``FIGURES`` as SVG or PDF, by the path's ending.

    Raises:
        RunError: the runs do not hold what the figure shows.
        OSError: the file cannot be written.
    """
    spec = FIGURES[name](runs)
    svg = vl_convert.vegalite_to_svg(spec)
    if path.suffix == ".pdf":
        # Its converter takes a pixel for a point.
        write_durably(path, vl_convert.svg_to_pdf(sized(svg, 72 / 25.4, "")))
    else:
        write_durably(path, sized(svg, 1.0, "mm").encode())


def ttft_ccdf(runs: Sequence[Run]) -> Spec:
    """Share of requests whose TTFT is at least x, for each delivery; both axes logarithmic."""
    tables = _answered(runs)
    found = {side: np.sort(np.concatenate([_ttfts(t, side) for t in tables])) for side in _SIDES}
    found = {side: values for side, values in found.items() if values.size}
    if not found:
        raise RunError("no request produced a token: there is no distribution to draw")
    unit = Unit.fitting(float(values.max()) for values in found.values())
    rows = [row for side, values in found.items() for row in _steps(side, values, unit)]
    most = max(values.size for values in found.values())
    shares = alt.Scale(type="log", domain=[1 / most, 1])
    decades = [10.0**-power for power in range(math.ceil(math.log10(most)) + 1)]
    lines = alt.Chart(alt.InlineData(values=rows)).mark_line(
        interpolate="step-before", strokeWidth=1.25
    )
    chart = lines.encode(
        x=_log_axis([row["x"] for row in rows]).title(f"TTFT ({unit.name})"),
        y=alt.Y("share:Q", scale=shares, axis=alt.Axis(values=decades, format=NUMBER)).title(
            "Share at least this slow"
        ),
        **_by_delivery(list(found)),
    )
    return specification(chart)


def ttft_by_rate(runs: Sequence[Run]) -> Spec:
    """Percentiles of TTFT against the offered rate, for each delivery."""
    points = _percentiles_by_rate(_answered(runs))
    rates = {point.rate_qps for point in points}
    if len(rates) < 2:
        raise RunError("percentiles by rate need requests at two rates or more; name several runs")
    unit = Unit.fitting(point.value_s for point in points)
    rows = [_row(point, unit) for point in points]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("rate:Q", axis=alt.Axis(values=sorted(rates), format=NUMBER, labelOverlap=True))
        .scale(type="log", nice=False)
        .title("Offered rate (queries/s)"),
        y=_log_axis([row["x"] for row in rows], alt.Y).title(f"TTFT ({unit.name})"),
        detail="level:N",
        **_by_delivery(sorted({point.delivery for point in points})),
    )
    levels = [level for level in _LEVELS if any(point.level == level for point in points)]
    widths = alt.Scale(domain=list(_LEVELS), range=[1.6, 1.1, 0.7])
    shapes = alt.Scale(domain=list(_LEVELS), range=["circle", "square", "triangle-up"])
    lines = base.mark_line().encode(
        strokeWidth=alt.StrokeWidth("level:N", scale=widths, legend=None)
    )
    # Padding: its symbols are lower than the lines of the legend beside it.
    legend = alt.Legend(
        values=levels, symbolFillColor="#000000", symbolStrokeWidth=0, symbolSize=30, padding=5
    )
    dots = base.mark_point(size=18, filled=True, opacity=1).encode(
        shape=alt.Shape("level:N", scale=shapes, legend=legend)
    )
    return specification(alt.layer(lines, dots).resolve_legend(shape="independent"))


FIGURES: Final[dict[str, Callable[[Sequence[Run]], Spec]]] = {
    "ttft-ccdf": ttft_ccdf,
    "ttft-by-rate": ttft_by_rate,
}
"""Figures by name; each takes one run or several."""


def _answered(runs: Sequence[Run]) -> list[pa.Table]:
    """Each run's successes of its final moment, which has to be one: figures pool the runs."""
    tables = [light_requests(run) for run in runs]
    moments = dict.fromkeys(final_moment(table) for table in tables)
    if len(moments) > 1:
        named = " and ".join(map(moment_text, moments))
        raise RunError(f"the runs answered {named}: draw those of one moment at a time")
    return [succeeded(final_rows(table)) for table in tables]


def _ttfts(requests: pa.Table, delivery: str) -> Floats:
    """The positive times of one delivery: others have no place on a logarithmic axis."""
    values = ttft_s(requests.filter(pc.equal(requests["delivery"], delivery)))
    return values[values > 0]


def _percentiles_by_rate(tables: Sequence[pa.Table]) -> list[_Points]:
    pooled = pa.concat_tables(tables)
    found = []
    for rate in sorted(set(pooled["rate"].drop_null().to_pylist())):
        at_rate = pooled.filter(pc.equal(pooled["rate"], rate))
        for side in _SIDES:
            values = _ttfts(at_rate, side)
            found += [
                _Points(side, level, float(rate), value)
                for level in _LEVELS
                if (value := percentile(values, LEVELS[level])) is not None
            ]
    return found


def _row(point: _Points, unit: Unit) -> dict[str, Any]:
    value = point.value_s * unit.per_s
    return {
        "delivery": point.delivery,
        "level": point.level,
        "rate": point.rate_qps,
        "x": value,
    }


def _steps(delivery: str, ordered: Floats, unit: Unit) -> list[dict[str, Any]]:
    kept = thinned(ordered.size, _POINT_LIMIT)
    shares = 1 - kept / ordered.size
    return [
        {"delivery": delivery, "x": value * unit.per_s, "share": share}
        for value, share in zip(ordered[kept].tolist(), shares.tolist(), strict=True)
    ]


def _log_axis(values: Sequence[float], kind: type[Any] = alt.X) -> Any:
    scale = alt.Scale(type="log", nice=False, domain=[min(values) / 1.1, max(values) * 1.1])
    axis = alt.Axis(format=NUMBER, tickCount=5, labelOverlap="greedy")
    return kind("x:Q", scale=scale, axis=axis)


def _by_delivery(present: list[str]) -> dict[str, Any]:
    """Colours that print dark and light, and dashes for those that print neither."""
    of = list(_SIDES)
    colour = alt.Scale(domain=of, range=[palette.STREAM, palette.WAIT])
    dash = alt.Scale(domain=of, range=[[1, 0], [4, 2]])
    legend = alt.Legend(values=present, symbolType="stroke", symbolSize=400)
    return {
        "color": alt.Color("delivery:N", scale=colour, legend=legend),
        "strokeDash": alt.StrokeDash("delivery:N", scale=dash, legend=legend),
    }
